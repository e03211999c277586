import { describe, expect, it } from 'vitest'
import { type GrantedClaim, type GrantedLease, Kernel } from '../../src/kernel/index.ts'
import type { Granted, HistoryReading, KeyReading, LeaseReading } from '../../src/port/index.ts'
import { Records } from './model/records.ts'

const NOW = 1_000_000
const RELEASED = { reason: 'released' } as const
const LEASE: GrantedLease = {
  born: 1,
  at: 10,
  holder: 'a',
  ttl: 1000,
  grace: 0,
  endOfLife: Infinity,
  parent: -1,
  labels: undefined,
}

/** A kernel during a replay. It keeps events from the revision `events` on. */
function begin(events = 0) {
  const kernel = new Kernel({ limits: { history: 100 } })
  const changeSink = kernel.replay()
  kernel.startEvents(events)
  const grant = (slot: number, born = slot + 1, parent = -1) =>
    changeSink.granted(born, slot, { ...LEASE, born, parent })
  const claim = (slot: number, token: number, differences: Partial<GrantedClaim> = {}) =>
    changeSink.claimed(token, slot, {
      at: token * 100,
      key: 'k',
      token,
      mode: 'exclusive',
      limit: 0,
      value: undefined,
      heldSince: 0,
      ...differences,
    })
  const release = (revision: number, slot: number, token: number, at: number, key = 'k') =>
    changeSink.released(revision, slot, at, key, token, RELEASED)
  const finish = () => kernel.finishReplay(NOW, NOW)
  /** Each claim on a key: its token, and since when it holds. */
  const queue = (key = 'k') =>
    (kernel.reader.read({ key }) as KeyReading).claims.map((each) => [each.token, each.heldSince])
  const childrenOf = (slot: number, born: number) =>
    (kernel.reader.read({ lease: `${slot}.${born}` }) as LeaseReading).lease?.children
  return { kernel, changeSink, grant, claim, release, finish, queue, childrenOf }
}

function eventsOf({ events }: Kernel): string[] {
  return Array.from({ length: events.next }, (_, number) => {
    const { revision, type, token, at } = events.event(number)
    return `${revision} ${type} ${token} at ${at}`
  })
}

describe('claims that are replayed out of order', () => {
  it('are ordered by their tokens, and one that seemed to hold waits', () => {
    const { kernel, grant, claim, finish, queue } = begin()
    for (const slot of [0, 1]) grant(slot)
    claim(0, 5)
    claim(1, 3, { heldSince: 350 })
    finish()
    expect(queue()).toEqual([
      [3, 350],
      [5, undefined],
    ])
    expect(kernel.ownClaims('0.1')?.claims[0]?.holds).toBe(false)
    kernel.release({ lease: '1.2', keys: ['k'], token: 3 }, NOW)
    expect(queue()).toEqual([[5, NOW]])
  })

  it('do not change the claims before them', () => {
    const { kernel, grant, claim, finish, queue } = begin()
    for (const slot of [0, 1, 2]) grant(slot)
    claim(0, 4, { mode: 'shared', heldSince: 450 })
    claim(1, 6, { mode: 'shared', heldSince: 650 })
    claim(2, 5)
    finish()
    expect(queue()).toEqual([
      [4, 450],
      [5, undefined],
      [6, undefined],
    ])
    kernel.release({ lease: '0.1', keys: ['k'], token: 4 }, NOW)
    expect(queue()).toEqual([
      [5, NOW],
      [6, undefined],
    ])
  })

  it('that waited hold since the claims before them were removed', () => {
    const { grant, claim, release, finish, queue } = begin()
    for (const slot of [0, 1, 2]) grant(slot)
    claim(0, 4, { mode: 'shared', heldSince: 450 })
    claim(1, 6, { mode: 'shared', heldSince: 650 })
    claim(2, 5)
    release(7, 0, 4, 700)
    finish()
    expect(queue()).toEqual([
      [5, 700],
      [6, undefined],
    ])
  })

  it('that wait but are recorded as holding hold since the recorded time', () => {
    const { grant, claim, release, finish, queue } = begin()
    for (const slot of [0, 1]) grant(slot)
    claim(0, 3, { heldSince: 300 })
    claim(1, 5, { heldSince: 600 })
    expect(queue()).toEqual([
      [3, 300],
      [5, undefined],
    ])
    release(6, 0, 3, 590)
    finish()
    expect(queue()).toEqual([[5, 600]])
  })

  it('leave nothing behind for the next claim in their row', () => {
    const { grant, claim, release, finish, queue } = begin()
    for (const slot of [0, 1, 2]) grant(slot)
    claim(0, 3, { heldSince: 300 })
    claim(1, 5, { heldSince: 600 })
    release(6, 1, 5, 610)
    claim(2, 7)
    release(8, 0, 3, 750)
    finish()
    expect(queue()).toEqual([[7, 750]])
  })
})

describe('removed claims', () => {
  it('let the next claim hold since then, whatever is replayed later', () => {
    const { grant, claim, release, finish, queue } = begin()
    for (const slot of [0, 1]) grant(slot)
    claim(0, 3, { key: 'a', heldSince: 300 })
    claim(0, 4, { key: 'b', heldSince: 400 })
    claim(1, 5, { key: 'a' })
    claim(1, 6, { key: 'b' })
    release(7, 0, 3, 700, 'a')
    release(8, 0, 4, 800, 'b')
    finish()
    expect([queue('a'), queue('b')]).toEqual([[[5, 700]], [[6, 800]]])
  })

  it('of one revision are removed together, so that none of them holds for an instant', () => {
    const { kernel, changeSink, grant, claim, finish, queue } = begin()
    for (const slot of [0, 1, 2]) grant(slot)
    claim(0, 4, { heldSince: 400 })
    claim(1, 5)
    claim(2, 6)
    for (const slot of [0, 1]) changeSink.ended(7, slot, 700, RELEASED)
    finish()
    expect(queue()).toEqual([[6, 700]])
    const { tenures } = kernel.reader.read({ history: 'k' }) as HistoryReading
    expect(tenures.map(({ token }) => token)).toEqual([4])
  })

  it('are added to the history only if no description can contain them', () => {
    const { kernel, changeSink, grant, claim, release, finish } = begin(10)
    grant(0)
    const tenure = { token: 9, holder: 'a', lease: '0.1', heldSince: 900, endedAt: 910 }
    changeSink.tenure('k', { ...tenure, end: RELEASED })
    for (const [token, revision] of [
      [7, 8],
      [8, 10],
      [9, 12],
      [11, 13],
    ] as const) {
      claim(0, token, { heldSince: token * 100 })
      release(revision, 0, token, revision * 100)
    }
    finish()
    const { tenures } = kernel.reader.read({ history: 'k' }) as HistoryReading
    expect(tenures.map(({ token }) => token)).toEqual([11, 9])
  })
})

describe('events', () => {
  it('are kept for changes after the revision that they start with', () => {
    const { kernel, grant, claim } = begin(10)
    grant(0)
    claim(0, 9)
    claim(0, 10, { key: 'l' })
    expect(kernel.events.next).toBe(0)
    claim(0, 11, { key: 'm' })
    expect(eventsOf(kernel)).toEqual(['11 claimed 11 at 1100', '11 held 11 at 1100'])
  })

  it('of a hand-over are in the revision of the removal, after all that it removes', () => {
    const { kernel, grant, claim, release, finish } = begin(5)
    for (const slot of [0, 1]) grant(slot)
    for (const key of ['a', 'b']) claim(0, 3, { key, heldSince: 300 })
    for (const key of ['b', 'a']) claim(1, 4, { key })
    claim(1, 5, { key: 'a' })
    for (const key of ['a', 'b']) release(6, 0, 3, 650, key)
    release(7, 1, 4, 700, 'a')
    finish()
    expect(eventsOf(kernel)).toEqual([
      ...['6 removed 3 at 650', '6 removed 3 at 650', '6 held 4 at 650', '6 held 4 at 650'],
      ...['7 removed 4 at 700', '7 held 5 at 700'],
    ])
  })

  it('do not include a claim that held before they start', () => {
    const { kernel, grant, claim, release, finish } = begin(5)
    for (const slot of [0, 1]) grant(slot)
    claim(0, 3, { heldSince: 300 })
    claim(1, 4)
    release(5, 0, 3, 500)
    claim(0, 6)
    finish()
    expect(eventsOf(kernel)).toEqual(['6 claimed 6 at 600'])
  })

  it('do not continue from a revision without changes', () => {
    const { kernel, grant } = begin()
    const from = (revisions: number[]) =>
      revisions.filter((revision) => kernel.events.continuesFrom(revision))
    grant(0, 4)
    grant(1, 5)
    grant(2, 10)
    expect(kernel.revision).toBe(10)
    expect(from([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10])).toEqual([0, 3, 4, 5, 9, 10])
  })

  it('continue from the revision that they start with, even without changes in it', () => {
    const { kernel, grant } = begin(5)
    grant(0, 8)
    expect(kernel.events.continuesFrom(5)).toBe(true)
  })
})

describe('children that are replayed before their parent', () => {
  it('are added to it as soon as it is replayed', () => {
    const { changeSink, grant, childrenOf } = begin()
    changeSink.covers(4)
    grant(0, 5, 3)
    grant(1, 6, 3)
    grant(3, 2)
    expect(childrenOf(3, 2)).toBe(2)
    changeSink.check()
  })

  it('are added to it even if others end first', () => {
    const { changeSink, grant, childrenOf } = begin()
    changeSink.covers(4)
    grant(0, 5, 3)
    grant(1, 6, 3)
    grant(2, 7)
    changeSink.ended(8, 2, 800, RELEASED)
    changeSink.ended(9, 0, 900, RELEASED)
    grant(3, 2)
    expect(childrenOf(3, 2)).toBe(1)
  })

  it('may have a parent in the first unused row', () => {
    const { grant, childrenOf } = begin()
    for (let slot = 0; slot < 31; slot++) grant(slot, slot + 2)
    grant(31, 33, 32)
    grant(32, 1)
    expect(childrenOf(32, 1)).toBe(1)
  })

  it('are an error if it is never replayed', () => {
    const { changeSink, grant } = begin()
    grant(0, 5, 5000)
    expect(() => changeSink.check()).toThrow('slot 0 is under slot 5000, which has no lease')
    changeSink.ended(6, 0, 600, RELEASED)
    changeSink.check()
  })
})

describe('impossible changes are refused', () => {
  it.each([
    ['younger', 7],
    ['of the same revision', 5],
  ])('if a parent is %s', (_, born) => {
    const { changeSink, grant } = begin()
    grant(0, born)
    grant(1, 5, 0)
    grant(2, 9)
    expect(() => changeSink.check()).toThrow('which is not older')
  })

  it('if a lease gets a slot past the first that was never used', () => {
    const { changeSink, grant } = begin()
    expect(() => grant(1)).toThrow('only slots up to 0 could be given out')
    changeSink.covers(0)
    expect(() => grant(1)).toThrow('only slots up to 0 could be given out')
    changeSink.covers(5)
    expect(() => grant(6)).toThrow('only slots up to 5 could be given out')
    grant(5)
  })

  it('if a change concerns a lease that does not exist', () => {
    const { changeSink, grant } = begin()
    for (let slot = 0; slot < 32; slot++) grant(slot)
    for (const slot of [32, 5000]) {
      const replay = () => changeSink.capped(40, slot, 400, 500, RELEASED)
      expect(replay).toThrow(`slot ${slot} has no lease`)
    }
  })

  it('if a lease releases the claim of another', () => {
    const { grant, claim, release } = begin()
    for (const slot of [0, 1]) grant(slot)
    claim(0, 3)
    expect(() => release(4, 1, 3, 400)).toThrow('slot 1 has no claim with token 3')
  })
})

describe('a description', () => {
  function grant(kernel: Kernel, key: string, request?: string): Granted {
    return kernel.grant({ holder: 'a', ttl: 1000, claims: [{ key }], request }, NOW) as Granted
  }

  it('reports a break only if there was one, and who broke the lease', () => {
    const kernel = new Kernel()
    grant(kernel, 'a')
    const { lease } = grant(kernel, 'b')
    kernel.revoke({ target: { lease }, after: 100, by: 'me', why: 'test' }, NOW)
    const records = new Records()
    kernel.describe(0, kernel.slots, records)
    expect(records.changes.map(({ kind }) => kind)).toEqual([
      ...['granted', 'claimed'],
      ...['granted', 'capped', 'claimed'],
    ])
    const copy = new Kernel()
    const changeSink = copy.replay()
    for (const each of records.changes) each.replay(changeSink)
    copy.finishReplay(NOW, NOW)
    const end = { reason: 'broken', by: 'me', why: 'test' }
    expect(copy.renew([lease], NOW)).toEqual({
      lost: [],
      capped: [{ lease, remaining: 100, end }],
    })
  })

  it('reports answers, ends and tenures in steps of 256, each once', () => {
    const kernel = new Kernel()
    for (let count = 0; count < 600; count++) {
      const { lease } = grant(kernel, `k${count}`, `r${count}`)
      kernel.revoke({ target: { lease } }, NOW)
    }
    const records = new Records()
    const steps: number[] = []
    let before = 0
    const note = () => {
      steps.push(records.changes.length - before)
      before = records.changes.length
    }
    for (const _ of kernel.describeRetained(records)) note()
    note()
    expect(steps).toEqual([256, 256, 256, 256, 256, 256, 256, 8])
    const count = (kind: string) => records.changes.filter((each) => each.kind === kind).length
    expect(['answered', 'remembered', 'tenure'].map(count)).toEqual([600, 600, 600])
  })

  it('reports no tenure of a key that was forgotten', () => {
    const kernel = new Kernel({ limits: { idleKeys: 2, history: 100 } })
    for (let count = 0; count < 5; count++) {
      const { lease } = grant(kernel, `k${count}`)
      kernel.revoke({ target: { lease } }, NOW)
    }
    const changes: string[] = []
    const records = new Records()
    records.tenure = (key) => void changes.push(key)
    for (const _ of kernel.describeRetained(records));
    expect(changes.sort()).toEqual(['k3', 'k4'])
  })
})
