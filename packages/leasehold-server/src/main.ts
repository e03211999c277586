import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { CONFIG_FLAG, helpOf, SETTING_NAMES, SETTINGS } from './config/index.ts'
import { fail, serve } from './serve.ts'

const { version } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
) as { version: string }

const program = new Command('leasehold')
  .description('Leases over the network: locks with fencing tokens, that end by themselves.')
  .version(version)

const serving = program
  .command('serve')
  .description('Serves a store of leases until it is told to stop (SIGTERM, SIGINT).')
  .action(serve)
for (const setting of [...SETTING_NAMES.map((name) => SETTINGS[name]), CONFIG_FLAG]) {
  serving.option(setting.flag, helpOf(setting))
}

await program.parseAsync().catch(fail)
