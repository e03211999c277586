import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Debian's Chromium; `undefined` where it is not on this machine. */
export function findBrowser() {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return folders.map((folder) => join(folder, 'chromium')).find((path) => existsSync(path))
}

/** Without a sandbox, which root cannot have, and without a word to anybody outside. */
export const BROWSER_ARGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]
