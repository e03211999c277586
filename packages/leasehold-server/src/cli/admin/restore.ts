import { Command } from 'commander'
import { systemClock } from 'leasehold/port'
import { epochOf, folderOf } from '../../stores/index.ts'
import { EXIT, EXIT_HELP, Exit } from '../exit-codes.ts'
import { integerOf } from '../number-options.ts'
import { plural, print } from '../output.ts'
import { copySecretsKey } from './backup.ts'
import { createFolder } from './new-folder.ts'

interface RestoreFlags {
  readonly store: string
  readonly tokensAbove?: string
  readonly empty?: boolean
  readonly json?: boolean
}

export function restoreCommand(): Command {
  return new Command('restore')
    .description('Restore a backup to a folder. Start the server on it afterwards.')
    .argument('[folder]', 'the backup; leave it out with --empty')
    .option('--store <url>', 'the store to create; it must be empty or missing', 'file:./data')
    .option(
      '--tokens-above <number>',
      "the highest fencing token that may exist; needed if this machine's clock is wrong",
    )
    .option('--empty', 'create an empty store without a backup, if the data is lost')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
The backup does not contain what was granted after it, and fencing tokens must not repeat. New tokens
therefore continue from a number computed from the time, above all earlier ones. The same applies to
--empty, which loses every lease and every access token: anybody can then use the server until you
create an access token.
${EXIT_HELP}`,
    )
    .action((folder: string | undefined, flags: RestoreFlags) => restore(folder, flags))
}

async function restore(folder: string | undefined, flags: RestoreFlags): Promise<void> {
  if ((folder === undefined) !== (flags.empty === true)) {
    throw new Exit(EXIT.usage, 'use either the folder of a backup or --empty')
  }
  const { copyFolder, fileStore } = await import('leasehold/file')
  const to = folderOf(flags.store)
  const highest = integerOf('--tokens-above', flags.tokensAbove ?? '0', 0)
  const tokensAbove = Math.max(epochOf(systemClock.now()), highest)
  const { revision, leases } = await createFolder(to, async (partial) => {
    if (folder !== undefined) {
      await copyFolder(folder, partial)
      await copySecretsKey(folder, partial)
    }
    const store = await fileStore(partial, { tokensAbove })
    try {
      const reading = await store.read({ leases: true })
      return { revision: reading.revision, leases: reading.leases.length }
    } finally {
      await store.close()
    }
  })
  print(flags.json, { folder: to, tokensAbove: revision, leases }, () => {
    return folder === undefined
      ? `created an empty store in ${to}; tokens continue above ${revision}`
      : `restored ${to}: ${plural(leases, 'lease')} with the full ttl again; tokens continue above ${revision}`
  })
}
