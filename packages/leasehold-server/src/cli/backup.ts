import { join } from 'node:path'
import { Command } from 'commander'
import { copyFolder } from 'leasehold/file'
import { invalid, show } from 'leasehold/port'
import { FileFault, readWhole, writeSecretsKey } from '../config/index.ts'
import { folderOf, SECRETS_KEY } from '../stores/index.ts'
import { EXIT_HELP } from './exit-codes.ts'
import { inPlace } from './in-place.ts'
import { print } from './table.ts'

interface BackupFlags {
  readonly store: string
  readonly json?: boolean
}

export function backupCommand(): Command {
  return new Command('backup')
    .description('Copies the data of a server, which may be running, to a new folder.')
    .argument('<folder>', 'where to; it must be empty or not there')
    .option('--store <url>', 'what to copy', 'file:./data')
    .option('--json', 'prints JSON')
    .addHelpText(
      'after',
      `
The copy is as of one moment, has been opened to see that it is whole, and holds the key of lease
secrets: keep it as safe as the data. The audit is not in it.
${EXIT_HELP}`,
    )
    .action((folder: string, flags: BackupFlags) => backup(folder, flags))
}

async function backup(folder: string, { store, json }: BackupFlags): Promise<void> {
  const from = folderOf(store)
  const revision = await inPlace(folder, async (place) => {
    const copied = await copyFolder(from, place)
    await copySecretsKey(from, place)
    return copied
  })
  print(json, { folder, revision }, () => `${folder} holds ${from} as of revision ${revision}`)
}

/** A store that no server has served yet has none. */
export async function copySecretsKey(from: string, to: string): Promise<void> {
  const path = join(from, SECRETS_KEY)
  try {
    writeSecretsKey(join(to, SECRETS_KEY), readWhole(path).content)
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    if (error.code === 'ENOENT') return
    throw invalid(
      `the key of lease secrets ${show(path)} cannot be read (${error.message}): put it right, or move it away`,
    )
  }
}
