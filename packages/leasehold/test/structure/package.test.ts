import { existsSync } from 'node:fs'
import { mkdtemp, readdir, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { run, runNode } from './commands.ts'
import { ROOT, readSource } from './source-files.ts'

const PACKAGE = join(ROOT, 'packages/leasehold')

interface Target {
  readonly types: string
  readonly default: string
}

const manifest = JSON.parse(readSource('packages/leasehold/package.json').text) as {
  readonly version: string
  readonly exports: Record<string, Target | string>
  readonly [field: string]: unknown
}
const subpaths = Object.entries(manifest.exports).filter(
  (entry): entry is [string, Target] => typeof entry[1] === 'object',
)
const names = subpaths.map(([subpath]) => `leasehold${subpath.slice(1)}`)

describe('the package', () => {
  it('has no dependencies: only optional peers, the clients of engines', () => {
    const kinds = Object.keys(manifest).filter((field) => /dependenc/i.test(field))
    expect(kinds).toEqual(['peerDependencies', 'peerDependenciesMeta'])
    const peers = Object.keys(manifest['peerDependencies'] as object)
    const isOptional = Object.fromEntries(peers.map((name) => [name, { optional: true }]))
    expect(manifest['peerDependenciesMeta']).toEqual(isOptional)
  })

  it.each(subpaths)('has a file and types for %s', (_subpath, target) => {
    expect(Object.keys(target)).toEqual(['types', 'default'])
    for (const file of Object.values(target)) {
      expect(existsSync(join(PACKAGE, file)), `${file} is made by the build`).toBe(true)
    }
    const source = target.default.replace(/^\.\/dist\//, 'src/').replace(/\.js$/, '.ts')
    expect(existsSync(join(PACKAGE, source)), `${source} is where it is made from`).toBe(true)
  })
})

describe('the tarballs', () => {
  it.each([
    ['leasehold', 900, 2_500_000],
    // Its command line is a bundle with the packages that it uses: about 4 MB, and 1 MB for a smaller
    // one without the servers, which most commands load.
    ['leasehold-server', 560, 7_000_000],
  ])(
    'of %s have at most %i files and %i bytes, without sources and maps',
    async (name, files, bytes) => {
      const folder = join(ROOT, 'packages', name)
      const packed = await run('npm', ['pack', '--dry-run', '--json'], folder)
      const [tarball] = Object.values(JSON.parse(packed.stdout) as Record<string, Tarball>)
      const paths = tarball!.files.map(({ path }) => path)
      expect(paths).toContain('dist/index.js')
      expect(paths).toContain('dist/index.d.ts')
      expect(paths.filter((path) => /^src\/|\.map$|\.tsbuildinfo$/.test(path))).toEqual([])
      expect(paths.length).toBeLessThanOrEqual(files)
      expect(tarball!.unpackedSize).toBeLessThanOrEqual(bytes)
    },
  )
})

describe('what users install', () => {
  it.each(['leasehold', 'leasehold-server'])('passes publint and attw: %s', async (name) => {
    const folder = join(ROOT, 'packages', name)
    const linted = await runNode(
      [installed('publint/src/cli.js'), folder, '--level', 'warning'],
      ROOT,
    )
    expect(linted.stdout, linted.stderr).toContain('All good!')
    const attw = installed('@arethetypeswrong/cli/dist/index.js')
    // Every supported release of Node loads modules with require(), so they need no second build.
    const typed = await runNode([attw, '--pack', folder, '--profile', 'esm-only'], ROOT)
    expect(typed.code, typed.stdout + typed.stderr).toBe(0)
  })

  it('is for every supported release of Node, with all that it depends on', async () => {
    const { stdout, stderr } = await runNode(['scripts/engine-warnings.js'], ROOT)
    expect(stdout, stderr).toBe('')
    expect(stderr).toBe('')
  })
})

function installed(path: string): string {
  return join(ROOT, 'node_modules', path)
}

interface Tarball {
  readonly files: readonly { readonly path: string }[]
  readonly unpackedSize: number
}

describe('the manifests', () => {
  it.each(['leasehold', 'leasehold-server'])('of %s say what it is and where it is', (name) => {
    const told = JSON.parse(readSource(`packages/${name}/package.json`).text)
    expect(told.repository).toEqual({
      type: 'git',
      url: 'git+https://github.com/leasehold/leasehold.git',
      directory: `packages/${name}`,
    })
    expect(told.homepage).toBe('https://github.com/leasehold/leasehold#readme')
    expect(told.keywords.length).toBeGreaterThan(4)
    expect(told.description.length).toBeGreaterThan(40)
  })
})

/** A user's project: it has the installed output of `npm pack`, and nothing of this repository. */
describe('a project that installs it', () => {
  let project: string

  beforeAll(async () => {
    // A path without links: a link would make one file two modules to the compiler.
    project = await realpath(await mkdtemp(join(tmpdir(), 'leasehold-consumer-')))
    const packed = await run('npm', ['pack', '--silent', '--pack-destination', project], PACKAGE)
    expect(packed.code, packed.stderr).toBe(0)
    const own = { name: 'consumer', private: true, type: 'module' }
    await writeFile(join(project, 'package.json'), JSON.stringify(own))
    const file = `./leasehold-${manifest.version}.tgz`
    const args = ['install', '--offline', '--no-audit', '--no-fund', '--no-package-lock', file]
    const installed = await run('npm', args, project)
    expect(installed.code, installed.stderr).toBe(0)
  })

  afterAll(() => rm(project, { recursive: true, force: true }))

  it('gets the documents with it', async () => {
    const files = await readdir(join(project, 'node_modules/leasehold'))
    expect(files.sort()).toEqual(
      ['CHANGELOG.md', 'LICENSE', 'README.md', 'dist', 'package.json'].sort(),
    )
  })

  it('runs the first example of the README unchanged', async () => {
    const [, typescript, expected] =
      /^```ts run\n(.*?)^```$\n*^```text\n(.*?)^```$/ms.exec(readSource('README.md').text) ?? []
    await writeFile(join(project, 'first.ts'), typescript!)
    const ran = await runNode([installed('tsx/dist/cli.mjs'), 'first.ts'], project)
    expect(ran.stdout, ran.stderr).toBe(expected)
  })

  it('runs the CommonJS example of the README unchanged', async () => {
    const [, javascript, expected] =
      /^```js run\n(.*?)^```$\n*^```text\n(.*?)^```$/ms.exec(readSource('README.md').text) ?? []
    await writeFile(join(project, 'first.cjs'), javascript!)
    const ran = await runNode(['first.cjs'], project)
    expect(ran.stdout, ran.stderr).toBe(expected)
  })

  it.each([
    ['node16', 'Node16'],
    ['nodenext', 'NodeNext'],
    ['bundler', 'ESNext'],
  ])('sees types with moduleResolution %s', async (moduleResolution, module) => {
    const file = `types-${moduleResolution}.ts`
    await writeFile(join(project, file), typedUse())
    const options = {
      target: 'ES2022',
      lib: ['ES2022', 'ESNext.Disposable'],
      module,
      moduleResolution,
      strict: true,
      exactOptionalPropertyTypes: true,
      // The declarations that are shipped are checked too.
      skipLibCheck: false,
      types: ['node'],
      typeRoots: [join(ROOT, 'node_modules/@types')],
      outDir: moduleResolution,
      rootDir: '.',
    }
    const config = `tsconfig.${moduleResolution}.json`
    const text = JSON.stringify({ compilerOptions: options, files: [file] })
    await writeFile(join(project, config), text)
    const compiled = await runNode([tsc(), '--project', config], project)
    expect(compiled.stdout).toBe('')
    expect(compiled.code).toBe(0)
    const ran = await runNode([`${moduleResolution}/types-${moduleResolution}.js`], project)
    expect(ran.stdout, ran.stderr).toBe('held with token 1\nlost: closed\n')
  })

  it('gets an error for a wrong use of the types', async () => {
    const wrong = `import { Leasehold } from 'leasehold'\nawait Leasehold.open(5)\n`
    await writeFile(join(project, 'wrong.ts'), wrong)
    const args = ['--noEmit', '--module', 'NodeNext', '--target', 'ES2022', '--ignoreConfig']
    const compiled = await runNode([tsc(), ...args, 'wrong.ts'], project)
    expect(compiled.stdout).toContain('wrong.ts(2,22): error TS2345')
  })

  it.each([
    ['redis://h', 'ioredis'],
    ['postgres://h/d', 'pg'],
    ['nats://h', '@nats-io/transport-node'],
  ])('is told what to install for %s', async (url, name) => {
    const program = `import { Leasehold } from 'leasehold'
await Leasehold.open('${url}').catch(({ code, message }) => console.log(code, message))\n`
    await writeFile(join(project, 'engine.js'), program)
    const ran = await runNode(['engine.js'], project)
    expect(ran.stdout, ran.stderr).toContain(`unsupported this store needs the package ${name}`)
    expect(ran.stdout).toContain(`'npm install ${name}'`)
  })

  it('gets an error if the engine cannot be reached, and continues', async () => {
    await symlink(join(ROOT, 'node_modules/pg'), join(project, 'node_modules/pg'))
    const program = `import { Leasehold } from 'leasehold'
await Leasehold.open('postgres://127.0.0.1:9/d').catch(({ code, message }) => console.log(code, message))\n`
    await writeFile(join(project, 'unreachable.js'), program)
    const ran = await runNode(['unreachable.js'], project)
    expect(ran.stdout, ran.stderr).toMatch(/^timeout .*ECONNREFUSED/)
    expect(ran.stderr).toBe('')
  })

  it('is told what it misspelt, in plain JavaScript', async () => {
    await writeFile(join(project, 'misspelt.js'), MISSPELT)
    const ran = await runNode(['misspelt.js'], project)
    expect(ran.stdout.trimEnd().split('\n'), ran.stderr).toEqual([
      '"hoder" is not an option of open: did you mean "holder"?',
      '"tll" is not an option of a lock: did you mean "ttl"?',
      '"adress" is not an option of register: did you mean "address"?',
      'there is no event "losst": did you mean "lost"?',
      "new Leasehold() opens nothing: write 'await Leasehold.open(url)'",
    ])
  })

  it('gets its timeouts from a frozen server, in plain JavaScript', async () => {
    await writeFile(join(project, 'frozen.js'), FROZEN)
    const bin = join(ROOT, 'packages/leasehold-server/bin/leasehold.js')
    const ran = await runNode(['frozen.js', bin], project)
    expect(ran.stdout, ran.stderr).toBe(
      'tryLock: unknown-outcome, in time: true\nfind: timeout, in time: true\nleader: timeout, in time: true\n',
    )
  })

  it.each(names)('loads %s with import', async (name) => {
    await writeFile(join(project, 'load.js'), `import * as it from '${name}'\n${COUNT}`)
    const { stdout, stderr } = await runNode(['load.js'], project)
    expect(Number(stdout), stderr).toBeGreaterThan(0)
  })

  it.each(names)('loads %s with require', async (name) => {
    await writeFile(join(project, 'load.cjs'), `const it = require('${name}')\n${COUNT}`)
    const { stdout, stderr } = await runNode(['load.cjs'], project)
    expect(Number(stdout), stderr).toBeGreaterThan(0)
  })

  it('cannot import unexported files', async () => {
    await writeFile(join(project, 'reach.js'), `import 'leasehold/dist/kernel/kernel.js'\n`)
    const { stderr } = await runNode(['reach.js'], project)
    expect(stderr).toContain('ERR_PACKAGE_PATH_NOT_EXPORTED')
  })
})

const COUNT = 'console.log(Object.keys(it).length)\n'

const MISSPELT = `
import { Leasehold } from 'leasehold'

const leasehold = await Leasehold.open('memory:')
const mistakes = [
  () => Leasehold.open('memory:', { hoder: 'me' }),
  () => leasehold.lock('k', { tll: '5s' }),
  () => leasehold.registry.register('s', { adress: 'a:1' }),
  () => leasehold.on('losst', () => {}),
  () => new Leasehold('memory:'),
]
for (const mistake of mistakes) {
  await (async () => mistake())().catch(({ message }) => console.log(message))
}
await leasehold.close()
`

/** A program that freezes its server, which is given by the path of its command. */
const FROZEN = `
import { spawn } from 'node:child_process'
import { Leasehold } from 'leasehold'

const args = [process.argv[2], 'serve', '--store', 'memory:', '--port', '0']
const server = spawn(process.execPath, args)
const url = await new Promise((resolve) => {
  server.stdout.on('data', (text) => {
    const found = /https?:\\S+/.exec(text)
    if (found) resolve(found[0])
  })
})
const leasehold = await Leasehold.open(url, { timeout: '2s' })
server.kill('SIGSTOP')
const calls = {
  tryLock: () => leasehold.tryLock('a', { timeout: '500ms' }),
  find: () => leasehold.registry.find('s', {}, { timeout: '500ms' }),
  leader: () => leasehold.election('e').leader(),
}
for (const [name, call] of Object.entries(calls)) {
  const begin = Date.now()
  const error = await call().catch((error) => error)
  console.log(\`\${name}: \${error.code}, in time: \${Date.now() - begin < 4000}\`)
}
server.kill('SIGKILL')
process.exit(0)
`

/** Uses every subpath, and their combination, as a user would. */
function typedUse(): string {
  const imports = names.map((name, index) => `import * as part${index} from '${name}'`)
  const uses = names.map((_, index) => `part${index}`)
  return `
${imports.join('\n')}
import { Leasehold, LeaseholdError, type Lock, type LossReason } from 'leasehold'
import type { LeaseStore } from 'leasehold/port'
import { memoryStore } from 'leasehold/memory'

const store: LeaseStore = memoryStore()
const leasehold: Leasehold = await Leasehold.open(store)
const lock: Lock = await leasehold.lock('a/b', { ttl: '30s', wait: 1000 })
const token: number = lock.token
console.log(lock.state, 'with token', token)
const { signal } = lock
await leasehold.close()
const error: unknown = signal.reason
if (!(error instanceof LeaseholdError)) throw error
const reason = error.reason as LossReason
console.log(\`\${error.code}: \${reason}\`)
if ([${uses.join(', ')}].some((part) => Object.keys(part).length === 0)) throw new Error('empty')
`
}

function tsc(): string {
  return installed('typescript/bin/tsc')
}
