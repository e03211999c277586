import { posix } from 'node:path'
import { describe, expect, it } from 'vitest'
import { importFaults, serverImportFaults } from './import-rules.ts'
import { filesUnder, readSource } from './source-files.ts'

const SRC = 'packages/leasehold/src'
const sources = filesUnder(SRC, /\.ts$/)

describe('imports', () => {
  it('point downwards only, through the doors, to no package', () => {
    expect(sources.length).toBeGreaterThan(50)
    expect(sources.flatMap((file) => importFaults(file, SRC))).toEqual([])
  })
})

/** The cycles of imports in the built code, which has no types. */
function cyclesOf(imports: ReadonlyMap<string, readonly string[]>): string[] {
  const cycles: string[] = []
  const done = new Set<string>()
  const visit = (file: string, chain: readonly string[]) => {
    if (chain.includes(file)) cycles.push([...chain.slice(chain.indexOf(file)), file].join(' → '))
    else if (!done.has(file)) {
      for (const next of imports.get(file) ?? []) visit(next, [...chain, file])
      done.add(file)
    }
  }
  for (const file of imports.keys()) visit(file, [])
  return cycles
}

describe('imports of the built code', () => {
  it('form no cycle', () => {
    const built = filesUnder('packages/leasehold/dist', /\.js$/)
    const imports = built.map(({ path, text }) => {
      const found = text.matchAll(/^(?:import|export)\b[^;]*?'(\.[^']+)';/gm)
      return [path, [...found].map(([, to]) => posix.join(posix.dirname(path), to!))] as const
    })
    expect(built.length).toBeGreaterThan(50)
    expect(cyclesOf(new Map(imports))).toEqual([])
  })

  it('are found to form one', () => {
    const imports = new Map([
      ['a', ['b', 'c']],
      ['b', ['c']],
      ['c', ['b']],
    ])
    expect(cyclesOf(imports)).toEqual(['b → c → b'])
  })
})

describe('imports of the server', () => {
  const server = filesUnder('packages/leasehold-server/src', /\.ts$/)
  const { dependencies, optionalDependencies } = JSON.parse(
    readSource('packages/leasehold-server/package.json').text,
  )
  const allowed = Object.keys({ ...dependencies, ...optionalDependencies })

  it('reach the library by its public subpaths, and no package that is not a dependency', () => {
    expect(server.length).toBeGreaterThan(5)
    expect(server.flatMap((file) => serverImportFaults(file, allowed))).toEqual([])
  })

  it.each([
    ['past the door', `import '../../leasehold/src/port/index.ts'`, 'outside'],
    ['what is not exported', `import 'leasehold/dist/port/index.js'`, 'public'],
    ['a stranger', `import 'left-pad'`, 'no dependency'],
    ['without an extension', `import './server.js'`, 'extension'],
  ])('are refused %s', (_name, text, fault) => {
    const path = 'packages/leasehold-server/src/a.ts'
    const faults = serverImportFaults({ path, text }, allowed)
    expect(faults).toHaveLength(1)
    expect(faults[0]).toContain(fault)
  })
})

describe('the rule for imports', () => {
  const judge = (path: string, text: string) => importFaults({ path: `${SRC}/${path}`, text }, SRC)

  it.each([
    ['upwards', 'kernel/a.ts', `import { b } from '../client/index.ts'`, 'must not know client'],
    ['types upwards', 'port/a.ts', `import type { b } from '../kernel/index.ts'`, 'must not know'],
    ['upwards by export', 'port/a.ts', `export * from '../kernel/index.ts'`, 'must not know'],
    ['upwards, later', 'kernel/a.ts', `await import('../stores/file/index.ts')`, 'must not know'],
    ['a type in place', 'port/a.ts', `let a: import('../kernel/index.ts').B`, 'must not know'],
    ['from a computed place', 'port/a.ts', 'await import(name)', 'depends on no package'],
    ['another store', 'stores/file/a.ts', `import '../memory/index.ts'`, 'never know each other'],
    ['a store from a recipe', 'recipes/a.ts', `import '../stores/file/index.ts'`, 'must not know'],
    ['testing, in use', 'client/a.ts', `import '../testing/index.ts'`, 'must not know testing'],
    ['the client in testing', 'testing/a.ts', `import '../client/index.ts'`, 'must not know'],
    ['the client in a fence', 'fence/a.ts', `import '../client/index.ts'`, 'must not know client'],
    ['a fence in a recipe', 'recipes/a.ts', `import '../fence/index.ts'`, 'must not know fence'],
    ['past the door', 'kernel/a.ts', `import { b } from '../port/errors.ts'`, 'by its index.ts'],
    ['a package', 'client/a.ts', `import fc from 'fast-check'`, 'depends on no package'],
    ['Node in the kernel', 'kernel/a.ts', `import 'node:fs'`, 'does without'],
    ['the tests', 'port/a.ts', `import '../../test/a.ts'`, 'outside'],
    ['without an extension', 'port/a.ts', `import './errors.js'`, 'extension'],
  ])('refuses an import %s', (_name, path, text, fault) => {
    const faults = judge(path, text)
    expect(faults).toHaveLength(1)
    expect(faults[0]).toContain(fault)
  })

  it('accepts valid imports', () => {
    expect(judge('kernel/a.ts', `import { b } from '../port/index.ts'\nimport './c.ts'`)).toEqual(
      [],
    )
    expect(judge('stores/file/a.ts', `import 'node:fs'\nimport '../../port/index.ts'`)).toEqual([])
    expect(judge('testing/index.ts', `export * from './sim/index.ts'`)).toEqual([])
    expect(judge('client/a.ts', `await import('../stores/file/index.ts')`)).toEqual([])
    expect(judge('index.ts', `export * from './client/index.ts'`)).toEqual([])
  })
})
