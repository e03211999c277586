import { describe, expect, it } from 'vitest'
import type { ClaimSpec, Granted, LeaseStore, Notice, Observer } from '../../../src/port/index.ts'
import { LeaseholdError } from '../../../src/port/index.ts'
import {
  errorFrom,
  readChanged,
  readClaimed,
  readError,
  readGranted,
  readGuarantees,
  readNotice,
  readReading,
  readRenewed,
  writeAnswer,
  writeChanged,
  writeClaimed,
  writeError,
  writeNotice,
  writeRenewed,
} from '../../../src/stores/remote/answers.ts'
import { CallRing } from '../../../src/stores/remote/call-ring.ts'
import { LeaseSecrets } from '../../../src/stores/remote/lease-secrets.ts'
import { quote, quoteAll, type Welcome } from '../../../src/stores/remote/protocol.ts'
import {
  inGroups,
  readClaim,
  readGrant,
  readLeases,
  readRelease,
  writeClaim,
  writeObject,
  writeRelease,
  writeRenew,
  writeTie,
  writeUnwatch,
} from '../../../src/stores/remote/requests.ts'

const sent = (text: string) => JSON.parse(text)

describe('a string', () => {
  it.each([
    '',
    'plain',
    '"',
    '\\',
    '\n',
    'a "quote"',
    'a\\b',
    'line\nbreak',
    'ä😀',
    '\ud800',
    '\x7f',
    '\u2028',
  ])('is quoted as JSON does: %j', (text) => {
    expect(JSON.parse(quote(text))).toBe(JSON.parse(JSON.stringify(text)))
    expect(JSON.parse(quoteAll([text]))).toEqual([JSON.parse(JSON.stringify(text))])
    expect(JSON.parse(quoteAll([text, 'b']))).toHaveLength(2)
  })
})

describe('a request', () => {
  it('to claim is read as it was written', () => {
    const plain = { lease: 'l', claims: [{ key: 'k' }] }
    expect(sent(writeClaim(1, plain))).toEqual([1, 'claim', 'l', ['k'], 0])
    const named = { ...plain, ifFree: true, request: 'r' }
    expect(sent(writeClaim(1, named))).toEqual([1, 'claim', 'l', ['k'], 1, 'r'])
    const several: ClaimSpec[][] = [
      [{ key: 'k', mode: 'exclusive' as const }],
      [{ key: 'k', mode: 'shared' as const }],
      [{ key: 'k', mode: 'shared' as const, limit: 2 }],
      [{ key: 'k', limit: 2 }],
      [{ key: 'k', value: 'v' }],
      [{ key: 'k', value: 'v' }, { key: 'l' }],
      [{ key: 'k' }, { key: 'l', value: 'v' }],
    ]
    for (const claims of several) {
      const read = readClaim(sent(writeClaim(1, { ...named, claims })))
      expect(read).toMatchObject({ lease: 'l', ifFree: true, request: 'r' })
      const isPlain = JSON.stringify(claims).includes('exclusive')
      expect(read.claims).toEqual(isPlain ? [{ key: 'k' }] : claims)
    }
    expect(readClaim([1, 'claim', 'l', 5 as never])).toEqual({
      ...{ lease: 'l', claims: 5, ifFree: false, request: undefined },
    })
    expect(readClaim([1, 'claim', 'l', [], 0]).ifFree).toBe(false)
    expect(() => readClaim([1, 'claim', 'l', [], true])).toThrowError(
      expect.objectContaining({ code: 'invalid-argument' }),
    )
  })

  it('to release, to renew, to tie and to end a watch is read as it was written', () => {
    const release = { lease: 'l', keys: ['a', 'b'], token: 7 }
    expect(sent(writeRelease(1, release))).toEqual([1, 'release', 'l', 7, ['a', 'b']])
    expect(readRelease(sent(writeRelease(1, { ...release, request: 'r' })))).toEqual({
      ...release,
      request: 'r',
    })
    expect(sent(writeRenew(2, ['a']))).toEqual([2, 'renew', ['a']])
    expect(sent(writeTie(3, ['a']))).toEqual([3, 'tie', ['a']])
    expect(readLeases([3, 'tie', ['a']])).toEqual(['a'])
    expect(() => readLeases([3, 'tie', [5]])).toThrowError(
      expect.objectContaining({ code: 'invalid-argument' }),
    )
    expect(sent(writeUnwatch(4, 2))).toEqual([4, 'unwatch', 2])
  })

  it('to grant keeps infinite times', () => {
    const spec = { holder: 'h', ttl: Infinity, maxLife: Infinity }
    expect(readGrant(sent(writeObject(1, 'grant', spec)))).toEqual(spec)
    const some = { holder: 'h', ttl: 5 }
    expect(readGrant([1, 'grant', some])).toBe(some)
    expect(readGrant([1, 'grant', { ...some, ttl: null }])).toEqual({ holder: 'h', ttl: Infinity })
    expect(readGrant([1, 'grant', { ...some, maxLife: null }])).toEqual({
      ...some,
      maxLife: Infinity,
    })
    expect(readGrant([1, 'grant', { ...some, ttl: null, maxLife: 9 }])).toMatchObject({
      maxLife: 9,
    })
    for (const wrong of [null, 5, undefined]) {
      expect(readGrant([1, 'grant', wrong])).toBe(wrong)
    }
  })

  it('for many leases is split by characters, each group with at least one', () => {
    expect(inGroups([], 10)).toEqual([])
    const few = ['aa', 'bb']
    expect(inGroups(few, 10)[0]).toBe(few)
    expect(inGroups(['aa', 'bb', 'cc'], 10)).toEqual([['aa', 'bb'], ['cc']])
    expect(inGroups(['aa', 'bb', 'cc'], 9)).toEqual([['aa'], ['bb'], ['cc']])
    expect(inGroups(['bbbbbbbbbbbbbbb', 'cc'], 10)).toEqual([['bbbbbbbbbbbbbbb'], ['cc']])
    expect(inGroups(['aa', 'bbbbbbbbbbbbbbb', 'cc'], 10)).toEqual([
      ...[['aa'], ['bbbbbbbbbbbbbbb'], ['cc']],
    ])
  })
})

describe('an answer', () => {
  const claim = { until: Infinity, key: 'k' }
  const wire = JSON.parse(JSON.stringify(claim))

  it('to a claim is short if it holds, and complete otherwise', () => {
    const held = { outcome: 'claimed', revision: 5, token: 4, holds: true, ahead: [] } as const
    expect(sent(writeClaimed(1, held))).toEqual([1, 1, 5, 4])
    expect(readClaimed([1, 1, 5, 4])).toEqual(held)
    const waits = { ...held, holds: false, ahead: [{ key: 'k', first: claim }] } as never
    expect(readClaimed(sent(writeClaimed(1, waits)))).toEqual(waits)
    const odd = { ...held, ahead: [{ key: 'k', first: claim }] } as never
    expect(readClaimed(sent(writeClaimed(1, odd)))).toEqual(odd)
    const behind = { ...held, holds: false } as never
    expect(readClaimed(sent(writeClaimed(1, behind)))).toEqual(behind)
    const busy = { outcome: 'busy', ahead: [] } as never
    expect(readClaimed(sent(writeClaimed(1, busy)))).toEqual(busy)
  })

  it('to other calls is read as it was written', () => {
    expect(readChanged(sent(writeChanged(1, { revision: 5 })))).toEqual({ revision: 5 })
    const none = { lost: [], capped: [] }
    expect(sent(writeRenewed(1, none))).toEqual([1, 1])
    expect(readRenewed([1, 1])).toEqual(none)
    for (const answer of [
      { lost: [], capped: [{ lease: 'l', remaining: Infinity }] },
      { lost: [{ lease: 'l', end: { reason: 'expired' } }], capped: [] },
    ]) {
      expect(readRenewed(sent(writeRenewed(1, answer as never)))).toEqual(answer)
    }
    const granted = { outcome: 'granted', lease: 'l', ahead: [{ key: 'k', first: claim }] } as never
    expect(readGranted(sent(writeAnswer(1, granted)))).toEqual(granted)
    expect(() => readGranted([1, 1, { outcome: 'granted', ahead: [] }])).toThrowError(TypeError)
    const busy = { outcome: 'busy', ahead: [] }
    expect(readGranted([1, 1, busy])).toBe(busy)
  })

  it.each([
    [{ claims: [wire] }, { claims: [claim] }],
    [{ keys: [{ claims: [wire] }] }, { keys: [{ claims: [claim] }] }],
    [{ lease: { ttl: null, endOfLife: null } }, { lease: { ttl: Infinity, endOfLife: Infinity } }],
    [{ leases: [{ remaining: null, ttl: 5 }] }, { leases: [{ remaining: Infinity, ttl: 5 }] }],
    [{ tenures: [{ until: null }] }, { tenures: [{ until: null }] }],
    [{}, {}],
  ])('to a reading has its infinite times restored: %j', (given, read) => {
    expect(readReading([1, 1, structuredClone(given)])).toEqual(read)
  })

  it('with a refusal has its code, and how the lease ended', () => {
    const ended = new LeaseholdError('lease-ended', 'gone', {
      reason: 'revoked',
      by: 'b',
      why: 'w',
    })
    expect(sent(writeError(1, ended))).toEqual([
      ...[1, 0, 'lease-ended', 'gone', { reason: 'revoked', by: 'b', why: 'w' }],
    ])
    expect(readError(sent(writeError(1, ended)))).toMatchObject({
      ...{ code: 'lease-ended', message: 'gone', reason: 'revoked', by: 'b', why: 'w' },
    })
    const plain = new LeaseholdError('closed', 'x')
    expect(sent(writeError(1, plain))).toEqual([1, 0, 'closed', 'x'])
    expect(errorFrom('toString', 'x')).toMatchObject({ code: 'unknown-outcome' })
  })

  it('with the welcome has no maximum ttl if it names none', () => {
    const welcome = { guarantees: { ttl: { min: 10 }, notes: ['n'] } } as unknown as Welcome
    expect(readGuarantees(welcome, 'there')).toEqual({
      inProcess: false,
      ties: true,
      ttl: { min: 10, max: Infinity },
      notes: ['n', 'It is reached over the network, at there.'],
    })
  })

  it('of a watch is read as it was written', () => {
    const capped = { type: 'capped', lease: 'l', remaining: Infinity } as unknown as Notice
    const [word, id, notice] = sent(writeNotice(7, capped))
    expect([word, id]).toEqual(['notice', 7])
    expect(readNotice(notice)).toEqual(capped)
    const gone = { type: 'gone', until: null } as unknown as Notice
    expect(readNotice(gone)).toEqual({ type: 'gone', until: null })
    const error = new LeaseholdError('closed', 'x')
    const told = sent(writeNotice(7, { type: 'interrupted', error }))
    expect(told).toEqual([
      'notice',
      7,
      { type: 'interrupted', error: { code: 'closed', message: 'x' } },
    ])
    const read = readNotice(told[2])
    expect(read).toMatchObject({ type: 'interrupted', error: { code: 'closed' } })
    expect(read.type === 'interrupted' && read.error).toBeInstanceOf(LeaseholdError)
  })
})

describe('the call ring', () => {
  it('finds what was added, oldest first, and grows', () => {
    const ring = new CallRing<{ id: number }>()
    expect([ring.next(), ring.oldest(), ring.all()]).toEqual([1, undefined, []])
    const ids: number[] = []
    for (let at = 0; at < 3000; at++) {
      const id = ring.next()
      ring.add({ id })
      ids.push(id)
    }
    expect([ring.size, ring.oldest()?.id]).toEqual([3000, 2])
    expect(ring.all().map(({ id }) => id)).toEqual(ids)
    for (const id of ids) expect(ring.get(id)?.id).toBe(id)
    expect([ring.get(1), ring.get(9999)]).toEqual([undefined, undefined])
    ring.remove(2)
    ring.remove(2)
    ring.remove(9999)
    expect([ring.size, ring.oldest()?.id]).toEqual([2999, 3])
    for (const id of ids) ring.remove(id)
    expect([ring.size, ring.oldest(), ring.all()]).toEqual([0, undefined, []])
    const id = ring.next()
    ring.add({ id })
    expect(ring.oldest()?.id).toBe(id)
  })
})

describe('the secrets of leases', () => {
  function scene() {
    const calls: unknown[] = []
    const answers: Record<string, unknown> = {}
    let observer: Observer = () => {}
    const store = new Proxy({} as LeaseStore, {
      get: (_target, name: string) => {
        if (name === 'guarantees') return 'guarantees'
        return (request: unknown, given: Observer) => {
          calls.push([name, request])
          observer = given ?? observer
          return name === 'watch' ? { close: () => {} } : Promise.resolve(answers[name])
        }
      },
    })
    const keeper = new LeaseSecrets(store)
    const granted = async (lease: string) => {
      answers['grant'] = { outcome: 'granted', lease }
      return (await keeper.grant({ holder: 'h', ttl: 1 })) as Granted
    }
    const last = () => calls.at(-1)
    return { keeper, answers, calls, last, granted, tell: (notice: Notice) => observer(notice) }
  }

  it('are removed from answers, and added to requests', async () => {
    const { keeper, last, granted, answers } = scene()
    expect((await granted('a~b~s')).lease).toBe('a~b')
    expect((await granted('c')).lease).toBe('c')
    const lease = 'a~b'
    await keeper.claim({ lease, claims: [] })
    expect(last()).toEqual(['claim', { lease: 'a~b~s', claims: [] }])
    await keeper.release({ lease, keys: [], token: 1 })
    expect(last()).toEqual(['release', { lease: 'a~b~s', keys: [], token: 1 }])
    await keeper.update({ lease, key: 'k', token: 1, value: '' })
    expect(last()).toMatchObject(['update', { lease: 'a~b~s' }])
    await keeper.read({ lease })
    expect(last()).toEqual(['read', { lease: 'a~b~s' }])
    await keeper.read({ key: 'k' })
    expect(last()).toEqual(['read', { key: 'k' }])
    await keeper.grant({ holder: 'h', ttl: 1, parent: lease })
    expect(last()).toEqual(['grant', { holder: 'h', ttl: 1, parent: 'a~b~s' }])
    await keeper.revoke({ target: { parent: lease } })
    expect(last()).toEqual(['revoke', { target: { parent: 'a~b~s' } }])
    await keeper.revoke({ target: { key: 'k' } })
    expect(last()).toEqual(['revoke', { target: { key: 'k' } }])
    answers['grant'] = { outcome: 'busy' }
    expect(await keeper.grant({ holder: 'h', ttl: 1 })).toEqual({ outcome: 'busy' })
    expect(keeper.guarantees).toBe('guarantees')
    await keeper.close()
    expect(last()).toEqual(['close', undefined])
  })

  it('are found by the plain id in renewals, and deleted with lost leases', async () => {
    const { keeper, last, granted, answers } = scene()
    await granted('a~s')
    await granted('b~s')
    answers['renew'] = {
      lost: [{ lease: 'a~s', end: 'e' }],
      capped: [{ lease: 'b~s', remaining: 1 }],
    }
    expect(await keeper.renew(['a', 'b', 'c'])).toEqual({
      lost: [{ lease: 'a', end: 'e' }],
      capped: [{ lease: 'b', remaining: 1 }],
    })
    expect(last()).toEqual(['renew', ['a~s', 'b~s', 'c']])
    await keeper.read({ lease: 'a' })
    expect(last()).toEqual(['read', { lease: 'a' }])
    await keeper.read({ lease: 'b' })
    expect(last()).toEqual(['read', { lease: 'b~s' }])
    answers['renew'] = { lost: [{ lease: 'c' }], capped: [] }
    expect((await keeper.renew(['c'])).lost).toEqual([{ lease: 'c' }])
  })

  it('are deleted with revoked and ended leases', async () => {
    const { keeper, last, granted, tell } = scene()
    for (const lease of ['a~s', 'b~s', 'c~s']) await granted(lease)
    await keeper.revoke({ target: { lease: 'a' } })
    expect(last()).toEqual(['revoke', { target: { lease: 'a~s' } }])
    await keeper.revoke({ target: { lease: 'b' }, after: 5 })
    const heard: Notice[] = []
    keeper.watch({ lease: 'c' }, (notice) => heard.push(notice))
    expect(last()).toEqual(['watch', { lease: 'c~s' }])
    tell({ type: 'watching' } as Notice)
    await keeper.read({ lease: 'c' })
    expect(last()).toEqual(['read', { lease: 'c~s' }])
    tell({ type: 'gone' } as Notice)
    expect(heard.map(({ type }) => type)).toEqual(['watching', 'gone'])
    const known: unknown[] = []
    for (const lease of ['a', 'b', 'c']) {
      await keeper.read({ lease })
      known.push((last() as [string, { lease: string }])[1].lease)
    }
    expect(known).toEqual(['a', 'b~s', 'c'])
    keeper.watch({ prefix: 'p' }, () => {})
    expect(last()).toEqual(['watch', { prefix: 'p' }])
  })

  it.each([null, undefined, 5, 'text'])('leave invalid values to the store: %j', async (wrong) => {
    const { keeper, calls, answers } = scene()
    answers['grant'] = { outcome: 'busy' }
    answers['renew'] = { lost: [], capped: [] }
    const given = wrong as never
    await keeper.grant(given)
    await keeper.renew(given)
    await keeper.revoke(given)
    await keeper.revoke({ target: given })
    await keeper.claim(given)
    await keeper.read(given)
    keeper.watch(given, () => {})
    expect(calls.map((call) => (call as unknown[])[1])).toEqual([
      ...[wrong, wrong, wrong, { target: wrong }, wrong, wrong, wrong],
    ])
  })
})
