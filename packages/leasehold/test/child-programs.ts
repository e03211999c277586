import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildSync } from 'esbuild'
import { afterAll } from 'vitest'

/** Inside node_modules, so that the programs find the packages that they use. */
const CACHE = fileURLToPath(new URL('../../../node_modules/.cache/', import.meta.url))

const built = new Map<string, readonly string[]>()
const folders: string[] = []

afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/**
 * Builds TypeScript files, each into one that Node runs as it is; they share what they both import. A
 * process that compiles its modules itself starts ten times as slowly. Deleted after the tests of the file.
 */
export function childPrograms(...sources: readonly string[]): readonly string[] {
  const name = sources.join()
  const known = built.get(name)
  if (known) return known
  mkdirSync(CACHE, { recursive: true })
  const outdir = mkdtempSync(join(CACHE, 'leasehold-tests-'))
  folders.push(outdir)
  buildSync({
    entryPoints: [...sources],
    ...{ outdir, entryNames: '[name]', outExtension: { '.js': '.mjs' } },
    ...{ bundle: true, splitting: true, platform: 'node', format: 'esm', packages: 'external' },
  })
  const programs = sources.map((source) => join(outdir, `${basename(source, '.ts')}.mjs`))
  built.set(name, programs)
  return programs
}
