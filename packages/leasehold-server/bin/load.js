// CommonJS, like the bundle: Node takes longer to start with a module.
const { statSync } = require('node:fs')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')
const { loadBundle } = require('./load-bundle.js')

const DIST = join(__dirname, '../dist')
const SERVERS = ['serve', 'mcp']
const HELP = ['--help', '-h']

/**
 * Runs the command line, from its bundle. In a clone of the repository the bundle may be older than
 * the rest of the build, or missing; then it runs the files that the compiler wrote.
 */
exports.load = () => {
  const args = process.argv.slice(2)
  const [command = '', action, ...rest] = args
  // A hook runs it before every edit, so it does not load the rest of the command line.
  const isGuard = command === 'mcp' && action === 'guard' && !rest.some((arg) => HELP.includes(arg))
  const bundle = join(DIST, 'bundle', `${isGuard ? 'guard' : bundleOf(command)}.cjs`)
  const compiled = join(DIST, isGuard ? 'guard.js' : 'main.js')
  // Only a clone has these: the published packages contain the bundle, and nothing newer.
  const builds = ['.tsbuildinfo', '../../leasehold/dist/.tsbuildinfo']
  const newest = Math.max(...builds.map((build) => changedAt(join(DIST, build))))
  if (changedAt(bundle) > 0 && changedAt(bundle) >= newest)
    return loadBundle(bundle, command).run(args)
  if (changedAt(compiled) > 0) {
    return import(pathToFileURL(compiled).href).then(({ run }) => run(args))
  }
  process.stderr.write(
    "leasehold: this is a clone of the repository that is not built yet. Run 'npm ci && npm run build' in it first\n",
  )
  process.exit(1)
}

/** Most commands are in a smaller bundle, which loads faster, without the servers. */
function bundleOf(command) {
  return /^[a-z]/.test(command) && !SERVERS.includes(command) ? 'commands' : 'main'
}

function changedAt(file) {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0
}
