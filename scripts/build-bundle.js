// Bundles the command line with what it uses, because Node loads a few large files several times faster
// than hundreds of small ones. What only some commands need stays in files of its own, which load when
// such a command runs. The clients of engines are not included: few servers need them.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SERVER = join(ROOT, 'packages/leasehold-server')
const OUT = join(SERVER, 'dist/bundle')
const { optionalDependencies } = JSON.parse(readFileSync(join(SERVER, 'package.json'), 'utf8'))

/** zod brings its messages in 50 languages, 300 kB. Ours are in English. */
const englishOnly = {
  name: 'english-only',
  setup({ onLoad }) {
    onLoad({ filter: /zod\/v4\/locales\/index\.js$/ }, () => ({
      contents: "export { default as en } from './en.js'",
    }))
  },
}

rmSync(OUT, { recursive: true, force: true })
const { metafile } = await build({
  absWorkingDir: ROOT,
  entryPoints: [join(SERVER, 'dist/main.js'), join(SERVER, 'dist/guard.js')],
  outdir: OUT,
  bundle: true,
  splitting: true,
  metafile: true,
  platform: 'node',
  format: 'esm',
  target: 'node20.19',
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: 'none',
  plugins: [englishOnly],
  external: [...Object.keys(optionalDependencies), '#demo'],
  // Some of the packages are CommonJS and require modules of Node.
  banner: {
    js: "import{createRequire as requireFrom}from'node:module';const require=requireFrom(import.meta.url);",
  },
})

writeFileSync(join(OUT, 'LICENSES.txt'), licensesOf(Object.keys(metafile.inputs)))

/** The licences of the packages in the bundle, which require that they are distributed with it. */
function licensesOf(inputs) {
  const folders = inputs.map((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0])
  const texts = [...new Set(folders.filter(Boolean))].sort().map((folder) => {
    const manifest = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'))
    return `${manifest.name} ${manifest.version}\n\n${licenseIn(join(ROOT, folder), manifest)}`
  })
  return texts.join(`\n${'-'.repeat(80)}\n\n`)
}

function licenseIn(folder, { license }) {
  const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name))
  // Some packages only name their licence.
  return file ? readFileSync(join(folder, file), 'utf8') : `Licensed under ${license}.\n`
}
