import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runNode } from '../structure/commands.ts'
import { ROOT, readSource } from '../structure/source-files.ts'

/**
 * The rarest notice, a watch that must read again, shows in one seed of 1,000 or fewer. The first
 * part has such a seed. If a change moves it, the other parts have another one.
 */
const [FIRST_SEED, PART, PARTS] = [2301, 200, 16]
const TIMEOUT_MS = 480_000

const PORT = 'packages/leasehold/src/port/lease-store.ts'
const CLIENT = 'packages/leasehold/src/client'

/** Options that no actor uses, and why. */
const EXEMPT: Readonly<Record<string, string>> = {
  'open.accessToken': 'It is for the address of a server, and a world has none.',
  'open.token': 'The old spelling of accessToken.',
  'open.tls': 'It is for the address of a server, like accessToken.',
  'open.tied': 'It is for the address of a server; actors tie single locks.',
  'open.headers': 'It is for the address of a server, like accessToken.',
  'open.logger': 'It decides nothing.',
  'open.telemetry': 'It decides nothing.',
}

/** The members of an interface, or of all variants of a type, from the source. */
function membersOf(path: string, name: string): string[] {
  const { text } = readSource(path)
  const begin = new RegExp(`export (interface|type) ${name}\\b`).exec(text)
  if (!begin) throw new Error(`${path} has no ${name}: correct this test`)
  const rest = text.slice(begin.index)
  // An interface ends with its brace; a type with the next export.
  const end = begin[1] === 'interface' ? rest.search(/\n}/) : rest.indexOf('\nexport ', 1)
  const body = rest.slice(rest.search(/[{=]/) + 1, end).replaceAll(/\/\*\*[\s\S]*?\*\//g, '')
  const members = [...body.matchAll(/(?:^|[{;\n])\s*(?:readonly )?(\w+)(?=\??[(:<])/g)]
  return [...new Set(members.map(([, member]) => member!))]
}

/** The kinds of notices, and the names of strategies: the words, not the members. */
function kindsOf(path: string, name: string, pattern: RegExp): string[] {
  const { text } = readSource(path)
  const rest = text.slice(text.indexOf(name))
  const body = rest.slice(0, rest.search(/\n(\/\*\* Called|} as const)/))
  return [...body.matchAll(pattern)].map(([, kind]) => kind!)
}

function wanted(): string[] {
  const named = (prefix: string, path: string, type: string): string[] =>
    membersOf(path, type).map((member) => `${prefix}${member}`)
  return [
    ...named('', PORT, 'LeaseStore').filter((member) => member !== 'guarantees'),
    ...['LeaseSpec', 'GrantRequest'].flatMap((type) => named('grant.', PORT, type)),
    ...['grant.claims.', 'claim.claims.'].flatMap((at) => named(at, PORT, 'ClaimSpec')),
    ...named('claim.', PORT, 'ClaimRequest'),
    ...named('release.', PORT, 'ReleaseRequest'),
    ...named('update.', PORT, 'UpdateRequest'),
    ...named('revoke.', PORT, 'RevokeRequest'),
    ...named('revoke.target.', PORT, 'RevokeTarget'),
    ...named('read.', PORT, 'Query'),
    ...named('watch.', PORT, 'WatchTarget'),
    ...kindsOf(PORT, 'export type Notice', /type: '([\w-]+)'/g).map((kind) => `notice.${kind}`),
    ...named('open.', `${CLIENT}/settings.ts`, 'ClientOptions'),
    ...named('leasehold.lock.', `${CLIENT}/leases/timings.ts`, 'TimingOptions'),
    ...named('leasehold.lock.', `${CLIENT}/acquire/lease-sources.ts`, 'HoldOptions'),
    ...named('leasehold.lock.', 'packages/leasehold/src/recipes/lock/lock.ts', 'LockOptions'),
    ...named('hold.', `${CLIENT}/leases/hold.ts`, 'Hold'),
    ...kindsOf(`${CLIENT}/leases/timings.ts`, 'export const STRATEGIES', /^ {2}(\w+): \{ ttl/gm)
      .filter((kind) => kind !== 'lock')
      .map((kind) => `leasehold.lock.strategy=${kind}`),
    ...['lock', 'tryLock', 'withLock', 'reclaim', 'close'].map((method) => `leasehold.${method}`),
  ]
}

/** The options that actors use in a part of the seeds. */
async function usedIn(from: number): Promise<string[]> {
  const program = join(ROOT, 'sim/dist/main.js')
  const args = [program, '--coverage', '--from', String(from), '--seeds', String(PART)]
  const { stdout, stderr } = await runNode(args, ROOT, TIMEOUT_MS)
  const last = stdout.trim().split('\n').at(-1) ?? ''
  expect(last.startsWith('['), stderr).toBe(true)
  return JSON.parse(last)
}

describe('the actors of the simulation', () => {
  it(
    'use every method and option of the port, of the client and of locks',
    async () => {
      const names = wanted()
      // If the sources are written in another way, this test must not become blind.
      expect(names.length).toBeGreaterThan(85)
      const used = new Set<string>()
      const missing = () => names.filter((name) => !used.has(name) && !(name in EXEMPT))
      for (let part = 0; part < PARTS && missing().length > 0; part++) {
        for (const name of await usedIn(FIRST_SEED + part * PART)) used.add(name)
      }
      expect(missing()).toEqual([])
      expect(Object.keys(EXEMPT).filter((name) => used.has(name) || !names.includes(name))).toEqual(
        [],
      )
    },
    TIMEOUT_MS,
  )
})
