import { describe, expect, it } from 'vitest'
import { Kernel } from '../../src/kernel/index.ts'
import type { Granted, LeaseId } from '../../src/port/index.ts'
import { Records } from './model/records.ts'

const NOW = 1_000_000
const limits = { requests: 3, ended: 3, history: 8, historyPerKey: 4, idleKeys: 5 }

function claim(kernel: Kernel, key: string, request?: string, holder = 'alice'): LeaseId {
  const claims = [{ key, value: `value of ${key}` }]
  return (kernel.grant({ holder, ttl: 1000, claims, request }, NOW) as Granted).lease
}

/** Claims a key and releases it. */
function use(kernel: Kernel, key: string, request?: string, holder?: string): void {
  kernel.revoke({ target: { lease: claim(kernel, key, request, holder) }, why: key }, NOW)
}

/** All that the kernel retains besides its leases. */
function remembered({ retained }: Kernel) {
  return {
    answers: [...retained.answers()],
    ends: [...retained.ends()],
    tenures: [...retained.tenures()],
    idleKeys: [...retained.idleKeys()],
  }
}

/** All that the kernel reports of its leases. */
function described(kernel: Kernel): string {
  const calls: unknown[] = []
  const records = new Records()
  kernel.describe(0, kernel.slots, records)
  const changeSink = new Proxy(records, {
    get:
      (_, name) =>
      (...details: unknown[]) =>
        void calls.push([name, ...details]),
  })
  for (const each of records.changes) each.replay(changeSink)
  return JSON.stringify(calls)
}

/** A new kernel with the leases of this one, and its retained state. */
function rebuilt(from: Kernel): Kernel {
  const kernel = new Kernel({ limits, revision: from.revision })
  const replay = kernel.replay()
  replay.covers(from.slots)
  from.describe(0, from.slots, replay)
  kernel.startEvents(kernel.revision)
  kernel.finishReplay(NOW, NOW)
  for (const answer of from.retained.answers()) kernel.retained.addAnswer(...answer)
  for (const end of from.retained.ends()) kernel.retained.addEnd(...end)
  for (const tenure of from.retained.tenures()) kernel.retained.addTenure(tenure)
  kernel.retained.setIdleKeys(from.retained.idleKeys())
  return kernel
}

describe('what a kernel retains besides its leases', () => {
  it('is answers, ends, tenures and idle keys, oldest first', () => {
    const kernel = new Kernel({ limits })
    for (let at = 0; at < 10; at++) use(kernel, `k${at}`, `r${at}`)
    const { answers, ends, tenures, idleKeys } = remembered(kernel)
    expect(answers.map(([request]) => request)).toEqual(['r6', 'r7', 'r8', 'r9'])
    expect(answers[3]).toMatchObject(['r9', { outcome: 'granted', token: 19 }])
    expect(ends).toEqual(
      [6, 7, 8, 9].map((at) => [2 * at + 1, { reason: 'revoked', why: `k${at}` }]),
    )
    // The last 8, although the keys of three were forgotten.
    expect(tenures.map((each) => each?.[0])).toEqual([
      ...[undefined, undefined, undefined],
      ...['k5', 'k6', 'k7', 'k8', 'k9'],
    ])
    expect(tenures[7]?.[1]).toEqual({
      token: 19,
      holder: 'alice',
      lease: '0.19',
      heldSince: NOW,
      endedAt: NOW,
      end: { reason: 'revoked', why: 'k9' },
    })
    expect(idleKeys.map(([key]) => key)).toEqual(['k5', 'k6', 'k7', 'k8', 'k9'])
  })

  it('is all kept tenures, even more of one key than its history shows', () => {
    const kernel = new Kernel({ limits })
    for (const key of ['a', 'a', 'a', 'b', 'a', 'a', 'a']) use(kernel, key)
    const tenures = remembered(kernel).tenures
    expect(tenures.map((each) => [each?.[0], each?.[1].token])).toEqual([
      ...[
        ['a', 1],
        ['a', 3],
        ['a', 5],
        ['b', 7],
      ],
      ...[
        ['a', 9],
        ['a', 11],
        ['a', 13],
      ],
    ])
  })

  it('is idle keys in the order in which they will be forgotten, after any number of rounds', () => {
    const kernel = new Kernel({ limits })
    for (let at = 0; at < 200; at++) {
      use(kernel, `k${at}`)
      const expected = Array.from({ length: 5 }, (_, back) => at - 4 + back).filter((n) => n >= 0)
      const idle = remembered(kernel).idleKeys.map(([key]) => key)
      expect(idle).toEqual(expected.map((each) => `k${each}`))
    }
  })

  it('includes as many keys as fill a page of their table', () => {
    const kernel = new Kernel({ limits })
    for (let at = 0; at < 1024; at++) claim(kernel, `held ${at}`)
    kernel.revoke({ target: { key: 'held 1023' } }, NOW)
    expect(remembered(kernel).tenures.map((each) => each?.[0])).toEqual(['held 1023'])
  })

  it('says whether an idle key was claimed since it became idle', () => {
    const kernel = new Kernel({ limits })
    // The sixth is one too many: the first is forgotten, and the others are queued again.
    for (const key of ['a', 'b', 'c', 'd', 'e', 'f']) use(kernel, key)
    use(kernel, 'c')
    claim(kernel, 'd')
    expect(remembered(kernel).idleKeys).toEqual([
      ['b', false],
      ['c', true],
      ['d', true],
      ['e', false],
      ['f', false],
    ])
  })
})

describe('a kernel with a restored state', () => {
  function pair() {
    const kernel = new Kernel({ limits })
    claim(kernel, 'held')
    for (let at = 0; at < 90; at++) use(kernel, `k${at}`, `r${at}`)
    claim(kernel, 'k88')
    use(kernel, 'k87')
    return [kernel, rebuilt(kernel)] as const
  }

  it('retains the same', () => {
    const [kernel, copy] = pair()
    expect(remembered(copy)).toEqual(remembered(kernel))
    expect(described(copy)).toBe(described(kernel))
  })

  it('forgets the same at the same time', () => {
    const [kernel, copy] = pair()
    const steps = [
      'n1',
      'k88',
      'k86',
      'n2',
      'n3',
      'held',
      'n4',
      'n5',
      'k88',
      'n6',
      'n7',
      'n8',
      'n9',
    ]
    for (const [at, key] of steps.entries()) {
      for (const each of [kernel, copy]) {
        if (at === 4) each.revoke({ target: { key: 'held' } }, NOW)
        if (at === 8) each.revoke({ target: { key: 'k88' } }, NOW)
        use(each, key, `s${at}`)
      }
      expect(remembered(copy)).toEqual(remembered(kernel))
    }
  })

  it('keeps a claimed key, and forgets it in its turn after it was released', () => {
    const [, copy] = pair()
    expect(remembered(copy).idleKeys.map(([key]) => key)).not.toContain('held')
    copy.revoke({ target: { key: 'held' } }, NOW)
    expect(remembered(copy).idleKeys.at(-1)).toEqual(['held', false])
  })
})

describe('a copy of a kernel', () => {
  it('reports everything as it was at that moment, while the kernel changes', () => {
    const kernel = new Kernel({ limits })
    // More rows than a page of a table has, and free ones among them.
    for (let at = 0; at < 1100; at++) claim(kernel, `held ${at}`)
    for (let at = 0; at < 20; at++) use(kernel, `k${at}`, `r${at}`)
    const parent = claim(kernel, 'parent')
    kernel.grant({ holder: 'bob', ttl: 1000, parent, labels: { a: 'b' } }, NOW)
    kernel.revoke({ target: { lease: parent }, after: 500, by: 'bob' }, NOW)
    const before = [described(kernel), remembered(kernel), kernel.slots, kernel.revision]
    const copy = kernel.copy()
    expect([described(copy), remembered(copy), copy.slots, copy.revision]).toEqual(before)
    kernel.revoke({ target: { prefix: 'held' } }, NOW)
    kernel.revoke({ target: { lease: parent } }, NOW)
    for (let at = 0; at < 20; at++) use(kernel, `l${at}`, `s${at}`, 'carol')
    for (let at = 0; at < 1200; at++) claim(kernel, `again ${at}`)
    expect([described(copy), remembered(copy), copy.slots, copy.revision]).toEqual(before)
  })
})
