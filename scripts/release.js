// `npm run release [-- --dry-run]`: checks that the repository can be released, runs the tests, packs
// both packages, and prints the commands that tag and publish. It never publishes by itself.
// With --dry-run an unreleased changelog is allowed and nothing is kept. --skip-tests is for our
// own test of this script.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const PACKAGES = ['leasehold', 'leasehold-server']

const { values } = parseArgs({
  options: {
    'dry-run': { type: 'boolean', default: false },
    'skip-tests': { type: 'boolean', default: false },
    root: { type: 'string', default: fileURLToPath(new URL('..', import.meta.url)) },
  },
})
const root = values.root
const isDryRun = values['dry-run']
const read = (path) => readFileSync(join(root, path), 'utf8')
const run = (program, args, cwd = root) => execFileSync(program, args, { cwd, encoding: 'utf8' })

const version = checked()
if (!values['skip-tests']) buildAndTest()
pack()

/** Reports every problem at once, so that none is found only after the first is fixed. */
function checked() {
  const problems = []
  const manifests = PACKAGES.map((name) => JSON.parse(read(`packages/${name}/package.json`)))
  const [library, server] = manifests
  const { version } = library
  if (server.version !== version) {
    problems.push(
      `leasehold is ${version} and leasehold-server is ${server.version}: use one version.`,
    )
  }
  if (server.dependencies.leasehold !== version) {
    const wanted = server.dependencies.leasehold
    problems.push(`leasehold-server depends on leasehold ${wanted}: change it to ${version}.`)
  }
  const heading = /^## (.*)$/m.exec(read('CHANGELOG.md'))?.[1] ?? ''
  const isDated = new RegExp(`^${version.replaceAll('.', '\\.')}, \\d{4}-\\d{2}-\\d{2}$`).test(
    heading,
  )
  if (!isDated && !(isDryRun && heading === `${version}, unreleased`)) {
    problems.push(`CHANGELOG.md starts with "${heading}": write "${version}, " and the date.`)
  }
  const changed = run('git', ['status', '--porcelain']).trim()
  if (changed !== '') problems.push(`the tree has changes that are not committed:\n${changed}`)
  if (run('git', ['tag', '--list', `v${version}`]).trim() !== '') {
    problems.push(`the tag v${version} exists: choose a new version.`)
  }
  for (const problem of problems) console.error(problem)
  if (problems.length > 0) process.exit(1)
  return version
}

/** From an empty folder: a build leaves the output of files that were renamed or deleted. */
function buildAndTest() {
  for (const name of PACKAGES)
    rmSync(join(root, 'packages', name, 'dist'), { recursive: true, force: true })
  execFileSync('npm', ['test'], { cwd: root, stdio: 'inherit' })
}

function pack() {
  const folder = isDryRun
    ? mkdtempSync(join(tmpdir(), 'leasehold-release-'))
    : join(root, 'release')
  mkdirSync(folder, { recursive: true })
  const files = PACKAGES.map((name) => {
    const args = ['pack', '--json', '--pack-destination', folder]
    const answer = JSON.parse(run('npm', args, join(root, 'packages', name)))
    const [{ filename, entryCount, unpackedSize }] = Object.values(answer)
    const megabytes = (unpackedSize / 1e6).toFixed(1)
    console.log(`packed ${filename}: ${entryCount} files, ${megabytes} MB`)
    return filename
  })
  if (isDryRun) {
    rmSync(folder, { recursive: true })
    console.log(`dry run: ${version} can be released; nothing was kept or published`)
    return
  }
  console.log('to publish, run:')
  console.log(`  git tag v${version} && git push origin v${version}`)
  for (const file of files) console.log(`  npm publish release/${file} --access public`)
}
