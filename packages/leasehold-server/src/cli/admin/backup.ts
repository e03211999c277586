import { join } from 'node:path'
import { Command } from 'commander'
import { invalid, show } from 'leasehold/port'
import { FileError, readSmallFile, writeSecretsKey } from '../../config/index.ts'
import { folderOf, SECRETS_KEY } from '../../stores/index.ts'
import { EXIT_HELP } from '../exit-codes.ts'
import { print } from '../output.ts'
import { createFolder } from './new-folder.ts'

interface BackupFlags {
  readonly store: string
  readonly json?: boolean
}

export function backupCommand(): Command {
  return new Command('backup')
    .description('Copy the data of a server to a new folder. The server may be running.')
    .argument('<folder>', 'the folder to create; it must be empty or missing')
    .option('--store <url>', 'the store to copy', 'file:./data')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
The copy shows the store at one moment and is opened once to check that it is complete. It contains
the lease secrets key: keep it as safe as the data. It does not contain the audit log.
${EXIT_HELP}`,
    )
    .action((folder: string, flags: BackupFlags) => backup(folder, flags))
}

async function backup(folder: string, { store, json }: BackupFlags): Promise<void> {
  const { copyFolder } = await import('leasehold/file')
  const from = folderOf(store)
  const revision = await createFolder(folder, async (partial) => {
    const copied = await copyFolder(from, partial)
    await copySecretsKey(from, partial)
    return copied
  })
  print(json, { folder, revision }, () => `copied ${from} at revision ${revision} to ${folder}`)
}

/** Copies the secrets key; a store that was never served has none. */
export async function copySecretsKey(from: string, to: string): Promise<void> {
  const path = join(from, SECRETS_KEY)
  try {
    writeSecretsKey(join(to, SECRETS_KEY), readSmallFile(path).content)
  } catch (error) {
    if (!(error instanceof FileError)) throw error
    if (error.code === 'ENOENT') return
    throw invalid(
      `cannot read the lease secrets key ${show(path)}: ${error.message}. Fix it, or move it away`,
    )
  }
}
