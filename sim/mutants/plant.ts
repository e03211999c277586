import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { Mutant } from './mutant.js'

const SIM = fileURLToPath(new URL('../', import.meta.url))
const PACKAGES = fileURLToPath(new URL('../../../packages/', import.meta.url))

/** The changed contents of each file, by its path. */
export async function plantedFiles({ name, edits }: Mutant): Promise<Map<string, string>> {
  const files = new Map<string, string>()
  for (const { file, find, replace } of edits) {
    const path = pathOf(file)
    const parts = (files.get(path) ?? (await readFile(path, 'utf8'))).split(find)
    if (parts.length !== 2) {
      throw new Error(
        `"${name}" is out of date: its code occurs ${parts.length - 1} times in ${file}`,
      )
    }
    files.set(path, parts.join(replace))
  }
  return files
}

function pathOf(file: string): string {
  if (file.startsWith('sim/')) return join(SIM, file.slice('sim/'.length))
  if (file.endsWith('.ts')) return join(PACKAGES, 'leasehold/src', file)
  if (!file.startsWith('server/')) return join(PACKAGES, 'leasehold/dist', file)
  return join(PACKAGES, 'leasehold-server/dist', file.slice('server/'.length))
}

/** Writes the simulation with a planted bug to one file, which starts faster than many. */
export async function bundle(mutant: Mutant, outfile: string): Promise<void> {
  const files = await plantedFiles(mutant)
  const { metafile } = await build({
    entryPoints: [join(SIM, 'main.js')],
    ...{ outfile, bundle: true, platform: 'node', format: 'esm', metafile: true },
    absWorkingDir: '/',
    // No world needs it, and it depends on installed packages.
    external: ['./mutants/run.js'],
    // CommonJS parts need `require`.
    banner: {
      js: "import { createRequire as requirer } from 'node:module'; const require = requirer(import.meta.url);",
    },
    logLevel: 'silent',
    plugins: [
      {
        name: 'plant',
        setup: ({ onLoad }) =>
          onLoad({ filter: /\.js$/ }, ({ path }) => {
            const contents = files.get(path)
            return contents === undefined ? undefined : { contents }
          }),
      },
    ],
  })
  for (const path of files.keys()) {
    if (path.slice(1) in metafile.inputs) continue
    throw new Error(`"${mutant.name}" is out of date: no world uses ${path}`)
  }
}
