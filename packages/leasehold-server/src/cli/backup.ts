import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Command } from 'commander'
import { copyFolder } from 'leasehold/file'
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
  try {
    await copyFile(join(from, SECRETS_KEY), join(to, SECRETS_KEY))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}
