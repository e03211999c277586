// Builds the server's page from packages/leasehold-server/dashboard: one script and one style, each
// named after a hash of its content, so that browsers may cache it, and compressed in advance.
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SERVER = join(ROOT, 'packages/leasehold-server')
const PAGE = join(SERVER, 'dashboard')
const OUT = join(SERVER, 'dist/dashboard/page')
const LIBRARY = join(ROOT, 'packages/leasehold/src')

/** The page uses the library's stream client, with a socket that shows its state on the page. */
const IN_A_BROWSER = {
  'stores/remote/web-socket.ts': 'live/browser-socket.ts',
}

const forBrowsers = {
  name: 'for-browsers',
  setup({ onResolve }) {
    onResolve({ filter: /^leasehold\/(port|remote)$/ }, ({ path }) => ({
      path: join(LIBRARY, path.endsWith('port') ? 'port/index.ts' : 'stores/remote/index.ts'),
      sideEffects: false,
    }))
    onResolve({ filter: /^\.\.?\/.*\.ts$/ }, ({ path, resolveDir }) => {
      const wanted = resolve(resolveDir, path)
      if (!wanted.startsWith(LIBRARY)) return undefined
      const own = IN_A_BROWSER[wanted.slice(LIBRARY.length + 1)]
      return { path: own === undefined ? wanted : join(PAGE, own), sideEffects: false }
    })
  },
}

const { outputFiles } = await build({
  entryPoints: { app: join(PAGE, 'main.tsx') },
  bundle: true,
  write: false,
  outdir: OUT,
  format: 'esm',
  target: ['chrome111', 'firefox115', 'safari16.4'],
  minify: true,
  legalComments: 'none',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  external: ['node:*'],
  plugins: [forBrowsers],
})

const contentOf = (ending) => outputFiles.find(({ path }) => path.endsWith(ending)).contents
const script = contentOf('.js')
if (/(from|import)\(?["']node:/.test(new TextDecoder().decode(script))) {
  throw new Error('the page imports a module of Node: check its imports from the library')
}

rmSync(OUT, { recursive: true, force: true })
mkdirSync(OUT, { recursive: true })

const names = {
  __SCRIPT__: put('app', 'js', script),
  __STYLE__: put('app', 'css', contentOf('.css')),
  __ICON__: put('icon', 'svg', readFileSync(join(PAGE, 'icon.svg'))),
}
const page = readFileSync(join(PAGE, 'index.html'), 'utf8')
const whole = page.replace(/__[A-Z]+__/g, (name) => names[name])
write('index.html', Buffer.from(whole))

/** Writes a file under a name with a hash of its content. Returns the name. */
function put(name, ending, content) {
  const hash = createHash('sha256').update(content).digest('base64url').slice(0, 10)
  return write(`${name}-${hash}.${ending}`, content)
}

function write(name, content) {
  writeFileSync(join(OUT, name), content)
  const params = { [constants.BROTLI_PARAM_QUALITY]: 10 }
  writeFileSync(join(OUT, `${name}.br`), brotliCompressSync(content, { params }))
  writeFileSync(join(OUT, `${name}.gz`), gzipSync(content, { level: 9 }))
  return name
}
