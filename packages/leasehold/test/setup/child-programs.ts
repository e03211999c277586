import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildSync } from 'esbuild'
import { afterFile } from './after-file.ts'

/** Inside node_modules, so that the programs find the packages that they use. */
const CACHE = fileURLToPath(new URL('../../../../node_modules/.cache/', import.meta.url))

const built = new Map<string, readonly string[]>()

/**
 * Builds TypeScript files to JavaScript; they share the modules that they import. A process that
 * compiles its modules itself starts ten times as slowly. Deleted after the tests of the file.
 */
export function childPrograms(...sources: readonly string[]): readonly string[] {
  const name = sources.join()
  const known = built.get(name)
  if (known) return known
  mkdirSync(CACHE, { recursive: true })
  const outdir = mkdtempSync(join(CACHE, 'leasehold-tests-'))
  afterFile(() => {
    built.delete(name)
    rmSync(outdir, { recursive: true, force: true })
  })
  buildSync({
    entryPoints: [...sources],
    ...{ outdir, entryNames: '[name]', outExtension: { '.js': '.mjs' } },
    ...{ bundle: true, splitting: true, platform: 'node', format: 'esm', packages: 'external' },
  })
  const programs = sources.map((source) => join(outdir, `${basename(source, '.ts')}.mjs`))
  built.set(name, programs)
  return programs
}
