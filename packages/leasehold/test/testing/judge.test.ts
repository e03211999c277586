import { describe, expect, it } from 'vitest'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { type Asked, type Entry, History } from '../../src/testing/concurrent/history.ts'
import { judge, type Rules } from '../../src/testing/concurrent/judge.ts'
import { TestClock } from '../../src/testing/index.ts'

const rules: Rules = { exactAfter: 0, inOrder: 'calls', times: 'all' }
/** Concurrent renewals: there are 40,320 orders of them. */
const RENEWALS = 8
/** Grants without an answer, and concurrent reads: none of them shows the effect of another. */
const [UNANSWERED, READINGS] = [6, 12]

type Call = Exclude<Asked, { method: 'watch' | 'restart' }>

/**
 * A claim that is never carried out, but may have been, then many concurrent renewals. Only a read
 * after a lease has expired shows that there was no claim.
 */
async function lostClaim(): Promise<{ readonly history: History; readonly reading: Entry }> {
  const clock = new TestClock()
  const store = memoryStore({ clock })
  const history = new History()
  const begin = (through: number, asked: Call) => history.begin(through, asked, clock.now())
  const answer = async (entry: Entry) => {
    const { method, argument } = entry.asked as Call
    const call = store[method] as (argument: unknown) => Promise<object>
    history.end(entry, { is: 'answered', answer: await call.call(store, argument) })
    return entry
  }
  await answer(begin(0, { method: 'grant', argument: { holder: 'alice', ttl: Infinity } }))
  await answer(begin(0, { method: 'grant', argument: { holder: 'bob', ttl: 50 } }))
  const { leases } = (await store.read({ leases: true })) as {
    readonly leases: readonly { readonly id: string }[]
  }
  const ids = leases.map(({ id }) => id)
  const argument = { lease: ids[0]!, claims: [{ key: 'a' }] }
  const lost = begin(0, { method: 'claim', argument })
  lost.isFree = true
  history.end(lost, { is: 'unknown', why: 'the connection broke' })
  const renewals = Array.from({ length: RENEWALS }, (_, at) =>
    begin(at + 1, { method: 'renew', argument: ids }),
  )
  for (const renewal of renewals) await answer(renewal)
  await clock.advance(60)
  const reading = await answer(begin(1, { method: 'read', argument: { key: 'a' } }))
  await store.close()
  return { history, reading }
}

/**
 * Grants whose answers were lost, and concurrent reads. One grant was carried out: the last, which
 * only a read at the end shows. Or it was carried out when no call was in flight any more.
 */
async function lostGrants(isLate: boolean): Promise<History> {
  const clock = new TestClock()
  const store = memoryStore({ clock })
  const history = new History()
  const read = async (entry: Entry) => {
    const answer = await store.read((entry.asked as { argument: { key: string } }).argument)
    history.end(entry, { is: 'answered', answer })
  }
  const begin = (through: number, asked: Call) => history.begin(through, asked, clock.now())
  const grants = Array.from({ length: UNANSWERED }, (_, at) =>
    begin(at, { method: 'grant', argument: grantOf(at) }),
  )
  const readings = Array.from({ length: READINGS }, (_, at) =>
    begin(UNANSWERED + at, { method: 'read', argument: { key: `none ${at}` } }),
  )
  for (const entry of readings) await read(entry)
  for (const entry of grants) {
    entry.isFree = true
    history.end(entry, { is: 'unknown', why: 'the connection broke' })
  }
  if (!isLate) await store.grant(grantOf(UNANSWERED - 1))
  history.quiet()
  await clock.advance(1)
  await read(begin(0, { method: 'read', argument: { key: 'none' } }))
  if (isLate) await store.grant(grantOf(UNANSWERED - 1))
  await read(begin(0, { method: 'read', argument: { key: 'a' } }))
  await store.close()
  return history
}

/** A lease is given a final deadline, then another one, and is ended. Its watch gets all notices. */
async function watchedEnd(): Promise<{ readonly history: History; readonly watch: Entry }> {
  const clock = new TestClock()
  const store = memoryStore({ clock })
  const history = new History()
  const grant = history.begin(0, { method: 'grant', argument: grantOf(0) }, clock.now())
  const answer = await store.grant(grantOf(0))
  if (answer.outcome !== 'granted') throw new Error('the key is free')
  history.end(grant, { is: 'answered', answer })
  const target = { lease: answer.lease }
  const watch = history.begin(0, { method: 'watch', argument: target }, clock.now())
  store.watch(target, (notice) => history.receive(watch, notice))
  for (const after of [30_000, 20_000, 0]) {
    const revocation = { target, after }
    const entry = history.begin(0, { method: 'revoke', argument: revocation }, clock.now())
    history.end(entry, { is: 'answered', answer: await store.revoke(revocation) })
  }
  await clock.advance(1)
  await store.close()
  return { history, watch }
}

function grantOf(at: number) {
  return { holder: `holder ${at}`, ttl: 60_000, claims: [{ key: 'a' }] }
}

describe('the judge of concurrent calls', () => {
  it('does not try a second order of renewals with the same result', async () => {
    const { history } = await lostClaim()
    expect(() => judge(history, rules)).not.toThrow()
  })

  it('finds that no order explains a reading of something that never existed', async () => {
    const { history, reading } = await lostClaim()
    const { answer } = reading.outcome as { readonly answer: { readonly revision: number } }
    reading.outcome = { is: 'answered', answer: { ...answer, revision: answer.revision + 2 } }
    expect(() => judge(history, rules)).toThrow('no order of the calls explains')
  })

  it('finds out which of many unanswered calls was carried out', async () => {
    const history = await lostGrants(false)
    expect(() => judge(history, rules)).not.toThrow()
  })

  it('does not carry out an unanswered call after a moment without calls in flight', async () => {
    const history = await lostGrants(true)
    expect(() => judge(history, rules)).toThrow('no order of the calls explains')
  })

  describe('of a watch that reports only what still counts', () => {
    const lenient: Rules = { ...rules, overtakenMayBeMissed: true }

    it('accepts a missing deadline that was replaced', async () => {
      const { history, watch } = await watchedEnd()
      expect(watch.received.map(({ type }) => type)).toEqual([
        'standing',
        'capped',
        'capped',
        'gone',
      ])
      watch.received.splice(1, 1)
      expect(() => judge(history, lenient)).not.toThrow()
      expect(() => judge(history, rules)).toThrow('but the model reports')
    })

    it('accepts that nothing was reported before the end', async () => {
      const { history, watch } = await watchedEnd()
      watch.received.splice(1, 2)
      expect(() => judge(history, lenient)).not.toThrow()
      expect(() => judge(history, rules)).toThrow('but the model reports')
    })

    it('does not accept a missing end, or a missing last deadline without the end', async () => {
      const { history, watch } = await watchedEnd()
      watch.received.pop()
      expect(() => judge(history, lenient)).toThrow('it did not get [{"type":"gone"')
      watch.received.pop()
      expect(() => judge(history, lenient)).toThrow('it did not get [{"type":"capped"')
    })
  })
})
