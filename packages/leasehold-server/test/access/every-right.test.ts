import {
  type Granted,
  isLeaseholdError,
  type LeaseId,
  type LeaseStore,
  type Notice,
  type Query,
  type RevokeTarget,
} from 'leasehold/port'
import { describe, expect, it } from 'vitest'
import { type Right, VERBS, type Verb, writeRight } from '../../src/access/index.ts'
import { open } from './scene.ts'

/**
 * Every operation of the port, by a principal with every combination of verbs, on keys inside and
 * outside its prefix. An independent model computes the expected results: a prefix is a set of
 * sample keys, and is allowed if each of them is.
 */
const OWN = 'leasehold/'
const KEYS = ['jobs/1', 'jobs/sub/1', 'jobs', 'jobsx', 'secret/1', 'lease', 'leasehold0']
const PREFIXES = ['jobs/', 'jobs/sub/', 'jobs', 'job', 'secret/', 'lease', 'leasehold/', '']
const WHY = 'merger'

class Model {
  readonly #rights: readonly Right[]

  constructor(rights: readonly Right[]) {
    this.#rights = rights
  }

  key(verb: Verb, key: string): boolean {
    const wanted = key.startsWith(OWN) ? 'admin' : verb
    return this.#rights.some(
      ({ verbs, prefix }) => verbs.includes(wanted) && key.startsWith(prefix),
    )
  }

  /** All keys with this prefix, without the server's own. */
  others(verb: Verb, prefix: string): boolean {
    if (prefix.startsWith(OWN)) return false
    return [`${prefix}0`, `${prefix}z/1`, `${prefix}~`].every((key) => this.key(verb, key))
  }

  all(verb: Verb, prefix: string): boolean {
    if (prefix.startsWith(OWN)) return this.key(verb, `${prefix}x`)
    const own = OWN.startsWith(prefix) ? this.key(verb, `${OWN}x`) : true
    return own && this.others(verb, prefix)
  }

  /** Any key at all. */
  somewhere(verb: Verb): boolean {
    const keys = this.#rights.map(({ prefix }) => `${prefix}x`)
    return [...keys, `${OWN}x`].some((key) => this.key(verb, key))
  }

  lease(verb: Verb, { keys, hasChild, isEnded }: Made): boolean {
    if (this.all(verb, '')) return true
    if (isEnded) return this.somewhere(verb)
    if (verb === 'admin' && hasChild) return false
    return keys.length === 0 ? this.others(verb, '') : keys.every((key) => this.key(verb, key))
  }
}

/** A lease of another principal. */
interface Made {
  readonly id: LeaseId
  readonly token: number
  readonly keys: readonly string[]
  readonly hasChild?: boolean
  readonly isEnded?: boolean
}

const secretOf = (key: string) => `value of ${key}.`

async function make(store: LeaseStore, keys: readonly string[], parent?: LeaseId): Promise<Made> {
  const claims = keys.map((key) => ({ key, mode: 'shared' as const, value: secretOf(key) }))
  const { lease: id, token } = (await store.grant({
    ...{ holder: 'somebody', ttl: 60_000, parent },
    ...(claims.length > 0 && { claims }),
  })) as Granted
  return { id, token, keys }
}

/** One of each kind. They are created again for each call, because calls change them. */
const KINDS: Record<string, (store: LeaseStore) => Promise<Made>> = {
  inside: (store) => make(store, ['jobs/1']),
  'inside, nested': (store) => make(store, ['jobs/1', 'jobs/sub/1']),
  beside: (store) => make(store, ['jobsx']),
  outside: (store) => make(store, ['secret/1']),
  both: (store) => make(store, ['jobs/1', 'secret/1']),
  'both, the second inside': (store) => make(store, ['secret/1', 'jobs/1']),
  'the server’s own': (store) => make(store, ['leasehold/x']),
  empty: (store) => make(store, []),
  'a parent': async (store) => {
    const made = await make(store, ['jobs/1'])
    await make(store, ['secret/1'], made.id)
    return { ...made, hasChild: true }
  },
  ended: async (store) => {
    const made = await make(store, ['secret/1'])
    await store.revoke({ target: { lease: made.id }, by: 'boss', why: WHY })
    return { ...made, isEnded: true }
  },
}

/** The code of the refusal, or `done`, and all that was said. */
async function tried(call: () => Promise<unknown>): Promise<{ outcome: string; said: string }> {
  try {
    return { outcome: 'done', said: JSON.stringify(await call()) ?? '' }
  } catch (error) {
    if (!isLeaseholdError(error)) throw error
    const { code, message, by, why } = error
    return { outcome: code, said: JSON.stringify({ message, by, why }) }
  }
}

const allowed = (may: boolean, otherwise = 'done') => (may ? otherwise : 'forbidden')

interface World {
  readonly inner: LeaseStore
  readonly mine: LeaseStore
  readonly may: Model
}

function hides(world: World, verb: Verb, said: string): void {
  for (const key of [...KEYS, 'leasehold/x']) {
    if (!world.may.key(verb, key)) expect(said).not.toContain(secretOf(key))
  }
}

async function keysAreGuarded(world: World): Promise<void> {
  const { mine, may } = world
  const spec = { holder: 'me', ttl: 60_000 }
  for (const key of [...KEYS, 'leasehold/x']) {
    const claims = [{ key, value: 'mine' }]
    const busy = await tried(() => mine.grant({ ...spec, claims, ifFree: true }))
    expect([key, busy.outcome]).toEqual([key, allowed(may.key('claim', key))])
    hides(world, 'read', busy.said)
    const waits = await tried(() => mine.grant({ ...spec, claims }))
    expect([key, waits.outcome]).toEqual([key, allowed(may.key('claim', key))])
    hides(world, 'read', waits.said)
    for (const query of [{ key }, { history: key }]) {
      const { outcome } = await tried(() => mine.read(query))
      expect([query, outcome]).toEqual([query, allowed(may.key('read', key))])
    }
  }
  const two = [{ key: 'jobs/9' }, { key: 'secret/9' }]
  const both = await tried(() => mine.grant({ ...spec, claims: two }))
  expect(both.outcome).toBe(allowed(two.every(({ key }) => may.key('claim', key))))
  const none = await tried(() => mine.grant(spec))
  expect(none.outcome).toBe(allowed(may.somewhere('claim')))
}

async function prefixesAreGuarded(world: World): Promise<void> {
  const { mine, may, inner } = world
  const every = (await inner.read({ prefix: '' })).keys.map(({ key }) => key)
  for (const prefix of PREFIXES) {
    const isAll = may.all('read', prefix)
    const mayRead = isAll || may.others('read', prefix)
    const shown = every.filter((key) => key.startsWith(prefix) && (isAll || !key.startsWith(OWN)))
    const query: Query = { prefix }
    const { outcome, said } = await tried(() => mine.read(query))
    expect([prefix, outcome]).toEqual([prefix, allowed(mayRead)])
    if (mayRead) {
      const { keys } = JSON.parse(said) as { keys: { key: string }[] }
      expect(keys.map(({ key }) => key)).toEqual(shown)
    }
    const mayWatch = may.all('watch', prefix) || may.others('watch', prefix)
    const watched = await tried(async () => mine.watch({ prefix }, () => {}).close())
    expect([prefix, watched.outcome]).toEqual([prefix, allowed(mayWatch)])
  }
  const leases = await tried(() => mine.read({ leases: true }))
  expect(leases.outcome).toBe(allowed(may.all('read', '') || may.others('read', '')))
}

async function leasesAreGuarded(world: World): Promise<void> {
  const { mine, may, inner } = world
  const spec = { holder: 'me', ttl: 60_000 }
  for (const [kind, makeOne] of Object.entries(KINDS)) {
    const check = async (
      what: string,
      expected: (made: Made) => string,
      verb: Verb,
      call: (made: Made) => Promise<unknown>,
    ) => {
      const made = await makeOne(inner)
      const { outcome, said } = await tried(() => call(made))
      expect([kind, what, outcome]).toEqual([kind, what, expected(made)])
      if (what !== 'read') expect(said).not.toContain('value of')
      hides(world, 'read', said)
      // A call that names no key of the lease must not reveal one.
      if (outcome === 'forbidden') expect(said).not.toMatch(/secret\/1|leasehold\/x/)
      if (!may.all(verb, '') && !may.others(verb, '')) expect(said).not.toContain(WHY)
    }
    const of =
      (verb: Verb, done = 'done', ended = done) =>
      (made: Made) =>
        allowed(may.lease(verb, made), made.isEnded ? ended : done)
    await check('read', of('read'), 'read', ({ id }) => mine.read({ lease: id }))
    await check('renew', of('renew'), 'renew', ({ id }) => mine.renew([id]))
    const released = (made: Made) =>
      of('release', made.keys.length > 0 ? 'done' : 'claim-not-found', 'lease-ended')(made)
    await check('release', released, 'release', ({ id: lease, token, keys }) =>
      keys.length > 0
        ? mine.release({ lease, token, keys })
        : mine.release({ lease, token: 1, keys: ['jobs/1'] }),
    )
    const claims = [{ key: 'jobs/new' }]
    const mayClaim = may.key('claim', 'jobs/new')
    const claimed = (made: Made) =>
      allowed(mayClaim && may.lease('renew', made), made.isEnded ? 'lease-ended' : 'done')
    await check('claim', claimed, 'renew', ({ id: lease }) => mine.claim({ lease, claims }))
    const under = (made: Made) =>
      allowed(
        may.somewhere('claim') && may.lease('renew', made),
        made.isEnded ? 'lease-ended' : 'done',
      )
    await check('grant', under, 'renew', ({ id }) => mine.grant({ ...spec, parent: id }))
    for (const name of ['lease', 'parent'] as const) {
      const expected = of('admin', 'done', 'lease-ended')
      await check(`revoke ${name}`, expected, 'admin', ({ id }) => {
        const target = { [name]: id } as unknown as RevokeTarget
        return mine.revoke({ target, why: 'x' })
      })
    }
  }
}

async function updatesAreGuarded({ mine, may, inner }: World): Promise<void> {
  for (const kind of ['inside', 'outside', 'both', 'both, the second inside']) {
    for (const at of [0, 1]) {
      const made = await KINDS[kind]!(inner)
      const { id: lease, token, keys } = made
      const key = keys[at]
      if (key === undefined) continue
      const { outcome } = await tried(() => mine.update({ lease, key, token, value: 'new' }))
      const mayUpdate = may.key('claim', key) && may.lease('renew', made)
      expect([kind, key, outcome]).toEqual([kind, key, allowed(mayUpdate)])
    }
  }
}

async function revocationsAreGuarded({ mine, may }: World): Promise<void> {
  for (const key of [...KEYS, 'leasehold/x']) {
    const { outcome } = await tried(() => mine.revoke({ target: { key }, why: 'x' }))
    expect([key, outcome]).toEqual([key, allowed(may.key('admin', key))])
  }
  // The server's own keys would end the access token that is used here.
  for (const prefix of PREFIXES.filter((each) => !OWN.startsWith(each))) {
    const { outcome } = await tried(() => mine.revoke({ target: { prefix }, why: 'x' }))
    expect([prefix, outcome]).toEqual([prefix, allowed(may.all('admin', prefix))])
  }
}

/** A watched lease gets keys that its watcher may not see, and loses them. */
async function noticesAreGuarded(world: World, settle: () => Promise<void>): Promise<void> {
  const { mine, may, inner } = world
  for (const [kind, makeOne] of Object.entries(KINDS)) {
    const made = await makeOne(inner)
    const notices: Notice[] = []
    const watch = mine.watch({ lease: made.id }, (notice) => notices.push(notice))
    await settle()
    const first = notices[0]?.type
    const expected = made.isEnded ? 'gone' : 'standing'
    expect([kind, first]).toEqual([kind, may.lease('watch', made) ? expected : 'interrupted'])
    if (!made.isEnded) {
      for (const key of ['secret/later', 'jobs/later']) {
        const before = (await inner.grant({
          holder: 'x',
          ttl: 60_000,
          claims: [{ key }],
        })) as Granted
        await inner.claim({ lease: made.id, claims: [{ key }] })
        await inner.revoke({ target: { lease: before.lease } })
        await settle()
        await inner.revoke({ target: { key }, why: WHY })
        await settle()
      }
    }
    watch.close()
    const said = JSON.stringify(notices)
    const maySecret = may.key('watch', 'secret/later')
    const mayJobs = may.key('watch', 'jobs/later')
    const isWatched = may.lease('watch', made) && !made.isEnded
    const countOf = (type: string) => notices.filter((notice) => notice.type === type).length
    expect([kind, said.includes('secret/later')]).toEqual([kind, isWatched && maySecret])
    const count = isWatched ? Number(maySecret) + Number(mayJobs) : 0
    expect([kind, countOf('removed'), countOf('holds')]).toEqual([kind, count, count])
    if (made.isEnded && !may.others('watch', '')) expect(said).not.toContain(WHY)
  }
}

const SUBSETS = Array.from({ length: 2 ** VERBS.length }, (_, bits) =>
  VERBS.filter((_verb, at) => bits & (1 << at)),
).filter((verbs) => verbs.length > 0)

/** Every combination of verbs on a prefix and on everything, and pairs that overlap. */
const COMBINATIONS: readonly (readonly Right[])[] = [
  ...['jobs/', ''].flatMap((prefix) => SUBSETS.map((verbs) => [{ verbs, prefix }])),
  ...VERBS.flatMap((verb) => [
    [
      { verbs: [verb], prefix: 'jobs/' },
      { verbs: [...VERBS], prefix: 'jobs/sub/' },
    ],
    [
      { verbs: [verb], prefix: 'secret/' },
      { verbs: ['claim', 'renew', 'release', 'read', 'watch'] as const, prefix: 'jobs/' },
    ],
    [
      { verbs: [verb], prefix: 'jobs' },
      { verbs: ['read', 'watch'] as const, prefix: '' },
    ],
    [
      { verbs: [verb], prefix: '' },
      { verbs: ['admin'] as const, prefix: 'leasehold/' },
    ],
  ]),
]

/** Mutation testing runs them all for each change that survives, so it takes one in ten. */
const { MUTATION_TESTS } = process.env
const TRIED = COMBINATIONS.filter((_rights, at) => MUTATION_TESTS === undefined || at % 10 === 6)

describe('rights', () => {
  it.each(TRIED.map((rights) => [rights.map(writeRight).join(' '), rights] as const))(
    '%s allow what they name, and show nothing else',
    async (_, rights) => {
      const { store: inner, clock, access, as } = await open()
      const { store: mine } = await as('me', rights.map(writeRight))
      const world = { inner, mine, may: new Model(rights) }
      for (const key of [...KEYS, 'leasehold/x']) await make(inner, [key])
      await prefixesAreGuarded(world)
      await leasesAreGuarded(world)
      await updatesAreGuarded(world)
      await noticesAreGuarded(world, () => clock.advance(0))
      await keysAreGuarded(world)
      await revocationsAreGuarded(world)
      access.close()
    },
  )
})
