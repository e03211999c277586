import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** The first of these folders, or of those where programs usually are, that has the program. */
export function findProgram(name: string, folders: readonly string[] = []): string | undefined {
  const usual = (process.env['PATH'] ?? '').split(delimiter)
  return [...folders, ...usual].map((folder) => join(folder, name)).find((path) => existsSync(path))
}

const setpriv = findProgram('setpriv')

/**
 * Put before a command: whoever measures may be killed, and what it started then ends with it, where
 * the system can do that.
 */
export const WITH_US: readonly string[] =
  setpriv === undefined ? [] : [setpriv, '--pdeathsig', 'KILL']
