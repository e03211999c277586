import { statSync } from 'node:fs'

const HELP = ['--help', '-h']

/**
 * Runs the command line, from its bundle. In a clone of the repository the bundle may be older than
 * the rest of the build, or missing; then it runs the files that the compiler wrote.
 */
export async function load() {
  const [, , command, action, ...rest] = process.argv
  // A hook runs it before every edit, so it does not load the rest of the command line.
  const isGuard = command === 'mcp' && action === 'guard' && !rest.some((arg) => HELP.includes(arg))
  const name = isGuard ? 'guard' : 'main'
  const bundle = new URL(`../dist/bundle/${name}.js`, import.meta.url)
  const compiled = new URL(`../dist/${name}.js`, import.meta.url)
  // Only a clone has these: the published packages contain the bundle, and nothing newer.
  const builds = ['../dist/.tsbuildinfo', '../../leasehold/dist/.tsbuildinfo']
  const newest = Math.max(...builds.map((build) => changedAt(new URL(build, import.meta.url))))
  if (changedAt(bundle) > 0 && changedAt(bundle) >= newest) return import(bundle.href)
  if (changedAt(compiled) > 0) return import(compiled.href)
  process.stderr.write(
    "leasehold: this is a clone of the repository that is not built yet. Run 'npm ci && npm run build' in it first\n",
  )
  process.exit(1)
}

function changedAt(url) {
  return statSync(url, { throwIfNoEntry: false })?.mtimeMs ?? 0
}
