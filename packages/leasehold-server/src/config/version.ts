import { readFileSync } from 'node:fs'

/** The version of this package. The path works from `src`, from `dist` and from the bundle. */
export function packageVersion(): string {
  const file = new URL('../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}
