import { fileURLToPath } from 'node:url'
import { globSync } from 'tinyglobby'
import { describe, expect, it } from 'vitest'
import { filesUnder, readSource } from './source-files.ts'

interface Explanation {
  readonly file: string
  readonly code: string
}

/** The faults of an explanation: a missing file, or a line that is not in it. */
function faultOf({ file, code }: Explanation, sources: ReadonlyMap<string, string>): string[] {
  const text = [...sources].find(([path]) => path.endsWith(file))?.[1]
  if (text === undefined) return [`${file} does not exist`]
  return text.split('\n').some((line) => line.trim() === code)
    ? []
    : [`${file} has no line: ${code}`]
}

describe('the explained mutants', () => {
  const sources = new Map(
    ['packages/leasehold/src', 'packages/leasehold-server/src']
      .flatMap((folder) => filesUnder(folder, /\.ts$/))
      .map(({ path, text }) => [path, text]),
  )
  const files = filesUnder('scripts/mutation/explained', /\.json$/)

  it.each(files.map(({ path }) => path))('%s names lines that exist', (path) => {
    const entries = JSON.parse(readSource(path).text) as Explanation[]
    expect(entries.length).toBeGreaterThan(0)
    expect(entries.flatMap((entry) => faultOf(entry, sources))).toEqual([])
  })

  it('are refused with an unknown file or line', () => {
    const known = new Map([['a.ts', '  return 1\n']])
    expect(faultOf({ file: 'a.ts', code: 'return 1' }, known)).toEqual([])
    expect(faultOf({ file: 'a.ts', code: 'return 2' }, known)).toEqual([
      'a.ts has no line: return 2',
    ])
    expect(faultOf({ file: 'b.ts', code: 'return 1' }, known)).toEqual(['b.ts does not exist'])
  })
})

/** A pattern without braces for each alternative in them. */
function alternativesOf(pattern: string): string[] {
  const [braces, inside] = /\{([^{}]*)\}/.exec(pattern) ?? []
  if (braces === undefined) return [pattern]
  return inside!.split(',').flatMap((each) => alternativesOf(pattern.replace(braces, each)))
}

describe('the folders of the mutation tests', () => {
  it('name only sources and tests that exist', async () => {
    const root = fileURLToPath(new URL('../../../../', import.meta.url))
    const { FOLDERS } = await import(`${root}scripts/mutation/folders.js`)
    const folders = Object.values(FOLDERS as Record<string, Record<string, string[]>>)
    const patterns = folders.flatMap(({ sources, tests }) => [...sources!, ...tests!])
    const wrong = patterns
      .flatMap(alternativesOf)
      .filter((pattern) => globSync(pattern, { cwd: root }).length === 0)
    expect(patterns.length).toBeGreaterThan(30)
    expect(wrong).toEqual([])
  })
})
