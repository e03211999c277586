import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Debian's Chromium; `undefined` if it is not installed. */
export function findBrowser() {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return folders.map((folder) => join(folder, 'chromium')).find((path) => existsSync(path))
}

/** No sandbox, because root cannot have one, and no connections to the outside. */
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
