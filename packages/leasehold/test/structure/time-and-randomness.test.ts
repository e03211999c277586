import { describe, expect, it } from 'vitest'
import {
  filesUnder,
  isNode,
  lineAt,
  type Node,
  parse,
  type SourceFile,
  walk,
} from './source-files.ts'

const SRC = 'packages/leasehold/src'

/** The only files that may use the machine's clock, timers or randomness, and which of them. */
const ALLOWED: Record<string, readonly string[]> = {
  'port/time/system-clock.ts': [
    'Date',
    'Date.now',
    'performance',
    'setTimeout',
    'setImmediate',
    'uptime',
  ],
  // A signature for Azure has the time of day in it, which the service compares with its own.
  'logs/azure/client/container.ts': ['Date', 'new Date()'],
  // Schedules name times of the day, which are dates. The current one is from a Clock.
  'recipes/cron/': ['Date'],
  'port/random.ts': ['Math.random', 'crypto'],
  // Code that judges stores from outside sees real time pass, like any test. Code that moves a
  // clock must let real promises settle, even with the fake timers of a test runner.
  'testing/': ['performance', 'setTimeout', 'setImmediate'],
}

const NAMES = new Set([
  'Date',
  'performance',
  'setTimeout',
  'setInterval',
  'setImmediate',
  'crypto',
  'hrtime',
  'uptime',
  'randomBytes',
  'randomUUID',
  'randomInt',
])
const MEMBERS = new Set([
  'Date.now',
  'Math.random',
  'process.hrtime',
  'process.uptime',
  'AbortSignal.timeout',
  'Atomics.wait',
])
/** Every use of the machine's time or randomness in a file. */
function usesOf(file: SourceFile): { readonly what: string; readonly line: number }[] {
  const uses: { what: string; line: number }[] = []
  walk(parse(file), (node) => {
    const what = whatOf(node)
    if (what) uses.push({ what, line: lineAt(file.text, node.start) })
    return undefined
  })
  return uses
}

function whatOf(node: Node): string | undefined {
  if (node.type === 'NewExpression' && nameOf(node['callee']) === 'Date') {
    if ((node['arguments'] as unknown[]).length === 0) return 'new Date()'
  }
  if (node.type === 'MemberExpression') {
    const name = `${nameOf(node['object'])}.${nameOf(node['property'])}`
    if (MEMBERS.has(name)) return name
  }
  const name = node.type === 'Identifier' ? String(node['name']) : ''
  return NAMES.has(name) ? name : undefined
}

function nameOf(node: unknown): string {
  return isNode(node) && node.type === 'Identifier' ? String(node['name']) : ''
}

function faultsOf(file: SourceFile): string[] {
  const path = file.path.slice(SRC.length + 1)
  const place = Object.keys(ALLOWED).find((allowed) => path.startsWith(allowed))
  const allowed = place === undefined ? [] : ALLOWED[place]!
  return usesOf(file)
    .filter(({ what }) => !allowed.includes(what))
    .map(({ what, line }) => `${file.path}:${line} uses ${what}: take a Clock or a Random instead`)
}

describe('time and randomness are arguments', () => {
  it('and only their own files touch the real ones', () => {
    expect(filesUnder(SRC, /\.ts$/).flatMap(faultsOf)).toEqual([])
  })

  it('and the kernel promises nothing for later', () => {
    const later = filesUnder(`${SRC}/kernel`, /\.ts$/).flatMap((file) => {
      const found: string[] = []
      walk(parse(file), (node) => {
        const isLater = node['async'] === true || node.type === 'AwaitExpression'
        if (isLater || nameOf(node) === 'Promise') {
          found.push(`${file.path}:${lineAt(file.text, node.start)}`)
        }
        return undefined
      })
      return found
    })
    expect(later).toEqual([])
  })
})

describe('the rule for time and randomness', () => {
  it.each([
    'const now = Date.now()',
    'const now = new Date()',
    'performance.now()',
    'globalThis.performance.now()',
    'setTimeout(run, 5)',
    'const later = setInterval',
    'setImmediate(run)',
    'Math.random()',
    'process.hrtime.bigint()',
    'crypto.randomUUID()',
    'AbortSignal.timeout(5)',
    `import { setTimeout as pause } from 'node:timers/promises'`,
    `import { randomBytes } from 'node:crypto'`,
  ])('refuses %s', (text) => {
    expect(faultsOf({ path: `${SRC}/client/a.ts`, text })).not.toEqual([])
  })

  it.each(['Date.now()', 'new Date()'])('refuses %s in a schedule too', (text) => {
    expect(faultsOf({ path: `${SRC}/recipes/cron/a.ts`, text })).toHaveLength(1)
  })

  it('accepts a clock that is handed in, and words in comments', () => {
    const text = '// Date.now() is not for us.\nclock.timer(clock.now() + 5, run)'
    expect(faultsOf({ path: `${SRC}/client/a.ts`, text })).toEqual([])
  })
})
