import { Command } from 'commander'
import { CONFIG_FLAG, type Flags, helpOf, SETTING_NAMES, SETTINGS } from '../config/index.ts'
import { serve } from '../serve.ts'

export function serveCommand(): Command {
  const command = new Command('serve')
    .description('Serves a store of leases until it is told to stop (SIGTERM, SIGINT).')
    .addHelpText(
      'after',
      `
Each can also be set in the environment, by the name in brackets, or in the file of --config, in
camelCase ("logLevel"). A flag comes before the environment, the environment before the file.
SIGHUP makes it read its certificates anew and open its audit anew.`,
    )
    .action((flags: Flags) => serve(flags))
  for (const setting of [...SETTING_NAMES.map((name) => SETTINGS[name]), CONFIG_FLAG]) {
    command.option(setting.flag, helpOf(setting))
  }
  return command
}
