import { describe, expect, it } from 'vitest'
import {
  type Habit,
  namedExports,
  noPlaces,
  nothingLeftToDo,
  plainNames,
  reasonedSkips,
  shortFiles,
  shortFunctions,
  smallLogs,
} from './habit-rules.ts'
import { filesUnder, readSource } from './source-files.ts'

const everything = filesUnder('.', /\.(tsx?|js|css|html|json|md|sh|yml)$|^run$|^\.npmrc$|^LICENSE$/)
const code = everything.filter((file) => /\.tsx?$/.test(file.path))
const tests = code.filter((file) => file.path.includes('/test/'))
const sources = code.filter((file) => !file.path.includes('/test/'))
const library = code.filter((file) => /\/(src|dashboard)\//.test(file.path))

describe('the repository', () => {
  it.each<[string, Habit, typeof code]>([
    ['keeps files short', shortFiles, code],
    ['keeps functions short', shortFunctions, sources],
    ['leaves nothing to do', nothingLeftToDo, code],
    ['gives a reason for each test that it leaves out', reasonedSkips, tests],
    ['names its files plainly', plainNames, code],
    ['exports by name', namedExports, library],
    ['does not know where it was written', noPlaces, everything],
  ])('%s', (_name, habit, files) => {
    expect(files.length).toBeGreaterThan(2)
    expect(files.flatMap(habit)).toEqual([])
  })

  it('keeps the log of each engine small', () => {
    expect(library.filter(({ path }) => path.includes('/src/logs/')).length).toBeGreaterThan(2)
    expect(smallLogs(library)).toEqual([])
  })

  it.each(['redis', 'postgres'])('finds the same file names in the store folders: %s', (engine) => {
    const folder = `packages/leasehold/src/stores/${engine}/`
    const names = filesUnder(folder, /\.ts$/).map(({ path }) => path.slice(folder.length))
    const root = ['index', 'client', 'options', 'guarantees', 'faults', `${engine}-store`]
    const inFolders = ['calls/calls', 'calls/answers', 'watches/watches']
    const wanted = [...root, ...inFolders].map((name) => `${name}.ts`)
    expect(names).toEqual(expect.arrayContaining(wanted))
  })

  it('locks packages by version and checksum, not by registry', () => {
    const { packages } = JSON.parse(readSource('package-lock.json').text) as {
      packages: Record<string, Locked>
    }
    const locked = Object.entries(packages).filter(([, { link }]) => !link)
    expect(locked.filter(([, { resolved }]) => resolved !== undefined)).toEqual([])
    const unchecked = locked
      .filter(([path]) => path.startsWith('node_modules/'))
      // Packages for other platforms are not available everywhere, so their checksums may be missing.
      .filter(([, { integrity, optional, cpu }]) => !integrity && !(optional && cpu))
    expect(unchecked).toEqual([])
  })

  it('locks the packages of every platform: otherwise a clean install is refused', () => {
    const { packages } = JSON.parse(readSource('package-lock.json').text) as {
      packages: Record<string, Locked>
    }
    const wanted = Object.values(packages).flatMap((entry) =>
      Object.keys(entry.optionalDependencies ?? {}),
    )
    expect(wanted.filter((name) => !packages[`node_modules/${name}`]?.version)).toEqual([])
  })
})

interface Locked {
  readonly version?: string
  readonly resolved?: string
  readonly integrity?: string
  readonly link?: boolean
  readonly optional?: boolean
  readonly cpu?: readonly string[]
  readonly optionalDependencies?: Record<string, string>
}

describe('the rule that', () => {
  const file = (text: string, path = 'packages/leasehold/src/port/a.ts') => ({ path, text })
  const lines = (count: number) => 'a()\n'.repeat(count)

  it('files are short sees a long one, unless it says why', () => {
    expect(shortFiles(file(lines(501)))).toHaveLength(1)
    expect(shortFiles(file(lines(500)))).toEqual([])
    expect(shortFiles(file(`// long because it is a table\n${lines(501)}`))).toEqual([])
    expect(shortFiles(file(`${lines(501)}// long because it is a table\n`))).toHaveLength(1)
  })

  it('logs are small sees a folder that is not, and no other', () => {
    const part = (path: string, count: number) => file(lines(count), `packages/a/src/${path}`)
    const shared = [part('logs/faults.ts', 500), part('logs/x/client/a.ts', 500)]
    expect(smallLogs([part('logs/x/a.ts', 150), part('logs/x/b.ts', 150), ...shared])).toEqual([])
    expect(smallLogs([part('logs/x/a.ts', 150), part('logs/x/b/c.ts', 151)])).toHaveLength(1)
  })

  it('functions are short sees a long one, unless it says why', () => {
    const long = `function f() {\n${lines(60)}}\n`
    expect(shortFunctions(file(long))).toHaveLength(1)
    expect(shortFunctions(file(`export const f = () => {\n${lines(60)}}\n`))).toHaveLength(1)
    expect(shortFunctions(file(`class A {\n  f() {\n${lines(60)}  }\n}`))).toHaveLength(1)
    expect(shortFunctions(file(`function f() {\n${lines(58)}}\n`))).toEqual([])
    expect(shortFunctions(file(`${lines(20)}// long because it is a table\n${long}`))).toEqual([])
    expect(shortFunctions(file(`// long because it is a table\n${lines(20)}${long}`))).toEqual([])
    expect(shortFunctions(file(`${lines(20)}// long because\n${lines(1)}${long}`))).toHaveLength(1)
  })

  it('nothing is left to do finds unfinished work', () => {
    expect(nothingLeftToDo(file(`a()\n// ${'TO'}DO: later`))).toEqual([
      'packages/leasehold/src/port/a.ts:2 leaves something to do',
    ])
  })

  it('skips have reasons sees a bare one', () => {
    const skip = `it.${'skip'}('x', () => {})`
    expect(reasonedSkips(file(skip))).toHaveLength(1)
    expect(reasonedSkips(file(`describe.${'todo'}('x')`))).toHaveLength(1)
    expect(reasonedSkips(file(`// Left out because it needs a second disk.\n${skip}`))).toEqual([])
    expect(reasonedSkips(file(`// Alone because I say so.\nit.${'only'}('x')`))).toHaveLength(1)
  })

  it('names are plain sees others', () => {
    expect(plainNames(file('', 'src/leaseStore.ts'))).toHaveLength(1)
    expect(plainNames(file('', 'src/helpers/a.ts'))).toHaveLength(1)
    expect(plainNames(file('', 'src/lease-utils.ts'))).toHaveLength(1)
    expect(plainNames(file('', 'src/lease-store.test.ts'))).toEqual([])
  })

  it('exports have names sees one without', () => {
    expect(namedExports(file('export default 5'))).toHaveLength(1)
  })

  it('no place is named sees one', () => {
    for (const place of ['ho' + 'me', 'ro' + 'ot', 'Use' + 'rs']) {
      expect(noPlaces(file(`const folder = '/${place}/a/b'`))).toHaveLength(1)
    }
    expect(noPlaces(file(`${'registry'}=https://example.com/`))).toHaveLength(1)
    expect(noPlaces(file(`"https://${'registry'}.npmjs.org/a"`))).toHaveLength(1)
    expect(noPlaces(file(`see docs/home/a.md and ./root/a`))).toEqual([])
  })
})
