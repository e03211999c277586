import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** The path of a program: looks in these folders first, then in `PATH`. */
export function findProgram(name: string, folders: readonly string[] = []): string | undefined {
  const usual = (process.env['PATH'] ?? '').split(delimiter)
  return [...folders, ...usual].map((folder) => join(folder, name)).find((path) => existsSync(path))
}

const setpriv = findProgram('setpriv')

/**
 * A command prefix: the child is killed if this process dies. It is empty if the system has no
 * `setpriv`.
 */
export const KILL_WITH_PARENT: readonly string[] =
  setpriv === undefined ? [] : [setpriv, '--pdeathsig', 'KILL']
