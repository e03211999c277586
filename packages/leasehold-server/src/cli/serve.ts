import { Command } from 'commander'
import { CONFIG_FLAG, type Flags, helpOf, SETTING_NAMES, SETTINGS } from '../config/index.ts'

export function serveCommand(): Command {
  const command = new Command('serve')
    .description('Serve a store of leases until SIGTERM or SIGINT.')
    .addHelpText(
      'after',
      `
Each option can also be set in the environment, by the name in brackets, or in the --config file in
camelCase ("logLevel"). A flag overrides the environment; the environment overrides the file.
SIGHUP reloads the certificates and reopens the audit log.`,
    )
    .action(async (flags: Flags) => (await import('../serve.ts')).serve(flags))
  for (const setting of [...SETTING_NAMES.map((name) => SETTINGS[name]), CONFIG_FLAG]) {
    command.option(setting.flag, helpOf(setting))
  }
  return command
}
