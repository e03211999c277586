// Bundles the command line with what it uses, because Node loads one large file several times faster
// than hundreds of small ones. The bundle runs the modules that only some commands need when such a
// command runs. It is CommonJS, because V8 can keep the compiled code of that (bin/load-bundle.js). The
// clients of engines are not included: few servers need them.
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
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

/** `leasehold serve` and `leasehold mcp` run in the bundle with everything: see bin/load.js. */
const withoutServers = {
  name: 'without-servers',
  setup({ onLoad }) {
    onLoad({ filter: /leasehold-server\/dist\/(serve|cli\/agents\/serve-mcp)\.js$/ }, () => ({
      contents: "throw new Error('this command is in another bundle')",
    }))
  },
}

/** A guard that finds no `leasehold mcp` asks the server, with what is in another bundle. */
const withCommands = {
  name: 'with-commands',
  setup({ onResolve }) {
    const external = { path: './commands.cjs', external: true }
    onResolve({ filter: /cli\/agents\/guard-server\.js$/ }, () => external)
  },
}

rmSync(OUT, { recursive: true, force: true })
mkdirSync(OUT)
const inputs = [
  ...(await bundle('main', 'main')),
  ...(await bundle('main', 'commands', withoutServers)),
  ...(await bundle('guard', 'guard', withCommands)),
]
writeFileSync(join(OUT, 'LICENSES.txt'), licensesOf(inputs))

/** Returns the files in the bundle. */
async function bundle(entry, name, ...plugins) {
  const { metafile, outputFiles } = await build({
    absWorkingDir: ROOT,
    entryPoints: [join(SERVER, `dist/${entry}.js`)],
    bundle: true,
    write: false,
    metafile: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20.19',
    supported: { 'dynamic-import': false },
    charset: 'ascii',
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    plugins: [englishOnly, ...plugins],
    external: [...Object.keys(optionalDependencies), '#demo'],
    define: { 'import.meta.url': 'bundleUrl' },
    banner: { js: "const bundleUrl=require('node:url').pathToFileURL(__filename).href;" },
  })
  const code = `${outputFiles[0].text}\n`
  const checksum = createHash('sha256').update(code).digest('hex')
  writeFileSync(join(OUT, `${name}.cjs`), `${code}//${checksum}\n`)
  return Object.keys(metafile.inputs)
}

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
