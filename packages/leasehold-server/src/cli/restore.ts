import { Command } from 'commander'
import { copyFolder, fileStore } from 'leasehold/file'
import { systemClock } from 'leasehold/port'
import { epochOf, folderOf } from '../stores/index.ts'
import { copySecretsKey } from './backup.ts'
import { EXIT, EXIT_HELP, Exit } from './exit-codes.ts'
import { inPlace } from './in-place.ts'
import { integerOf } from './numbers.ts'
import { print } from './table.ts'

interface RestoreFlags {
  readonly store: string
  readonly tokensAbove?: string
  readonly empty?: boolean
  readonly json?: boolean
}

export function restoreCommand(): Command {
  return new Command('restore')
    .description('Puts a backup in place, for a server that is then started on it.')
    .argument('[folder]', 'the backup; none with --empty')
    .option('--store <url>', 'where to; it must be empty or not there', 'file:./data')
    .option(
      '--tokens-above <number>',
      'the highest fencing token that may have been given, where the clock of this machine cannot be trusted',
    )
    .option('--empty', 'without a backup: makes an empty store, for when the data is lost')
    .option('--json', 'prints JSON')
    .addHelpText(
      'after',
      `
What was granted after the backup is not in it, so no token may be given again: they go on from a
number made of the time, above all that a store can have given until now. The same goes for --empty,
which loses every lease and every access token: anybody can then use the server until you make one.
${EXIT_HELP}`,
    )
    .action((folder: string | undefined, flags: RestoreFlags) => restore(folder, flags))
}

async function restore(folder: string | undefined, flags: RestoreFlags): Promise<void> {
  if ((folder === undefined) !== (flags.empty === true)) {
    throw new Exit(EXIT.usage, 'name the folder of the backup, or give --empty; one of the two')
  }
  const to = folderOf(flags.store)
  const highest = integerOf('--tokens-above', flags.tokensAbove ?? '0', 0)
  const tokensAbove = Math.max(epochOf(systemClock.now()), highest)
  const { revision, leases } = await inPlace(to, async (place) => {
    if (folder !== undefined) {
      await copyFolder(folder, place)
      await copySecretsKey(folder, place)
    }
    const store = await fileStore(place, { tokensAbove })
    try {
      const reading = await store.read({ leases: true })
      return { revision: reading.revision, leases: reading.leases.length }
    } finally {
      await store.close()
    }
  })
  print(flags.json, { folder: to, tokensAbove: revision, leases }, () => {
    return folder === undefined
      ? `${to} holds an empty store, tokens go on above ${revision}`
      : `${to} is restored: ${leases} leases have their full ttl again, tokens go on above ${revision}`
  })
}
