import { describe, expect, it } from 'vitest'
import { Conflict } from '../../../src/client/index.ts'
import { LeaseholdError } from '../../../src/index.ts'
import { PendingRequest } from '../../../src/recipes/pool/pending-request.ts'
import { requestOf, type TakeOptions } from '../../../src/recipes/pool/request.ts'
import { TestClock } from '../../../src/testing/index.ts'

interface Answers<Answer> {
  readonly args: unknown[]
  readonly answer: (answer: Answer) => void
  readonly fail: (error: unknown) => void
}

/** A function whose calls the test answers. */
function asked<Answer>() {
  const calls: Answers<Answer>[] = []
  const call = (...args: unknown[]) =>
    new Promise<Answer>((answer, fail) => void calls.push({ args, answer, fail }))
  return { calls, call }
}

/** A queue claim that the test can revoke. */
function makePlace(claimToken = 3) {
  const stop = new AbortController()
  const place = {
    claimToken,
    signal: stop.signal,
    returned: 0,
    lose: (reason: string) =>
      stop.abort(new LeaseholdError('lost', 'it is lost', { reason: reason as never })),
    [Symbol.asyncDispose]: async () => void place.returned++,
  }
  return place
}

function makePermit() {
  const permit = { returned: 0, [Symbol.asyncDispose]: async () => void permit.returned++ }
  return permit
}

const CONFLICT = Object.create(Conflict.prototype) as Conflict
const UNKNOWN = new LeaseholdError('unknown-outcome', 'no answer')
const REFUSED = new LeaseholdError('storage-full', 'no space')

/** A pending request in a pool that the test controls. */
function scene(options: Partial<TakeOptions> = {}) {
  const clock = new TestClock()
  const keptAlive: (boolean | undefined)[] = []
  const timer: typeof clock.timer = (time, run, keepAlive?: boolean) => {
    keptAlive.push(keepAlive)
    return clock.timer(time, run)
  }
  const holds = asked<unknown>()
  const takes = asked<unknown>()
  const notices = asked<unknown>()
  const count = { decide: 0, left: 0 }
  const room = {
    client: {
      clock: { now: () => clock.now(), timer },
      random: { next: () => 0.25 },
      hold: holds.call,
      tryHold: notices.call,
      emit: () => {},
    },
    name: 'p',
    queueKey: 'pool/p/line',
    noticePrefix: 'pool/p/notice/',
    noticePeriod: () => 60_000,
    seen: 1,
    decide: () => void count.decide++,
    take: takes.call,
    left: () => void count.left++,
  }
  const waiting = new PendingRequest(room as never, requestOf({ tenant: 't', ...options }))
  let outcome: unknown
  waiting.outcome.then(
    (permit) => (outcome = permit),
    (error) => (outcome = error),
  )
  const join = async (place = makePlace()) => {
    void waiting.join()
    holds.calls.at(-1)!.answer(place)
    await clock.settle()
    return place
  }
  const settle = () => clock.settle()
  const made = { clock, room, waiting, keptAlive, count, join, settle, outcome: () => outcome }
  return { ...made, holds: holds.calls, takes: takes.calls, notices: notices.calls }
}

describe('a pending request', () => {
  it('keeps the process running', () => {
    expect(scene().keptAlive).toEqual([true])
  })

  it('has a queue claim that ends soon after its process died', async () => {
    const { holds, join, waiting } = scene()
    await join()
    expect(holds[0]!.args[1]).toEqual({ ttl: 15_000 })
    expect(waiting.queueToken).toBe(3)
  })

  it('is settled once, whatever happens later', async () => {
    const { waiting, count, settle, outcome } = scene()
    expect(waiting.settled).toBe(false)
    waiting.fail('first')
    waiting.fail('second')
    await settle()
    expect([waiting.settled, count.left, outcome()]).toEqual([true, 1, 'first'])
  })

  it('does not join the queue after it is settled', () => {
    const { waiting, holds } = scene()
    waiting.fail('over')
    void waiting.join()
    expect(holds).toHaveLength(0)
  })

  it('releases a queue claim that arrives after it is settled', async () => {
    const { waiting, holds, count, settle } = scene()
    const place = makePlace()
    void waiting.join()
    waiting.fail('over')
    holds[0]!.answer(place)
    await settle()
    expect([place.returned, count.decide, waiting.queueToken]).toEqual([1, 0, undefined])
  })

  it.each(['expired', 'unreachable'])('joins again when its place is %s', async (reason) => {
    const { waiting, holds, join, outcome } = scene()
    const place = await join()
    place.lose(reason)
    expect([waiting.queueToken, holds.length]).toEqual([undefined, 2])
    await join(makePlace(9))
    expect([waiting.queueToken, outcome()]).toEqual([9, undefined])
  })

  it.each([
    ['revoked', 'lost'],
    ['closed', 'closed'],
  ])('fails when its place is %s', async (reason, code) => {
    const { holds, join, settle, outcome } = scene()
    const place = await join()
    place.lose(reason)
    await settle()
    expect(outcome()).toMatchObject({ code })
    expect(holds).toHaveLength(1)
  })

  it('ignores the loss of its queue claim after it is settled', async () => {
    const { waiting, holds, join } = scene()
    const place = await join()
    waiting.fail('over')
    place.lose('expired')
    expect(holds).toHaveLength(1)
  })
})

describe('a request that is next', () => {
  it('takes once at a time, and resolves with the permit', async () => {
    const { waiting, takes, join, settle, outcome } = scene()
    await join()
    void waiting.take(['k'])
    void waiting.take(['k'])
    expect(takes).toHaveLength(1)
    const permit = makePermit()
    takes[0]!.answer(permit)
    await settle()
    expect([outcome(), permit.returned]).toEqual([permit, 0])
  })

  it('takes nothing after it is settled, and returns a late permit', async () => {
    const { waiting, takes, join, settle, outcome } = scene()
    await join()
    void waiting.take(['k'])
    waiting.fail('over')
    const permit = makePermit()
    takes[0]!.answer(permit)
    await settle()
    expect([permit.returned, outcome()]).toEqual([1, 'over'])
    void waiting.take(['k'])
    expect(takes).toHaveLength(1)
  })

  it.each([
    ['has seen more since', true],
    ['has seen no more since', false],
  ])('if another was faster, decides again if it %s', async (_, hasSeen) => {
    const { waiting, room, takes, count, join, settle } = scene()
    await join()
    void waiting.take(['k'])
    if (hasSeen) room.seen++
    const before = count.decide
    takes[0]!.answer(CONFLICT)
    await settle()
    expect(count.decide - before).toBe(hasSeen ? 1 : 0)
    void waiting.take(['k'])
    expect(takes).toHaveLength(2)
  })

  it('decides again after a pause if the outcome is unknown', async () => {
    const { clock, waiting, takes, count, join, settle, outcome } = scene()
    await join()
    void waiting.take(['k'])
    const before = count.decide
    takes[0]!.fail(UNKNOWN)
    await settle()
    await clock.advance(749)
    expect(count.decide - before).toBe(0)
    await clock.advance(1)
    expect(count.decide - before).toBe(1)
    void waiting.take(['k'])
    expect([takes.length, outcome()]).toEqual([2, undefined])
  })

  it('does not decide again if it was settled meanwhile', async () => {
    const { clock, waiting, takes, count, join } = scene()
    await join()
    void waiting.take(['k'])
    const before = count.decide
    waiting.fail('over')
    takes[0]!.fail(UNKNOWN)
    await clock.advance(10_000)
    expect(count.decide - before).toBe(0)
  })

  it.each([['the store refuses it', REFUSED] as const, ['it fails', new Error('a bug')] as const])(
    'fails if %s',
    async (_, error) => {
      const { waiting, takes, join, settle, outcome } = scene()
      await join()
      void waiting.take(['k'])
      takes[0]!.fail(error)
      await settle()
      expect(outcome()).toBe(error)
    },
  )
})

describe('a preemption for a pending request', () => {
  const permits = (...tokens: number[]) =>
    tokens.map((token) => ({ token, keys: [`k${token}`], holder: 'x' })) as never
  const never = () => false

  /** Notices for the permits 1 and 2. */
  async function noticed() {
    const made = scene()
    const place = await made.join()
    made.waiting.preempt(permits(1, 2), never)
    const given = made.notices.map(() => makePlace())
    made.notices.forEach(({ answer }, at) => void answer(given[at]))
    await made.settle()
    return { ...made, place, withdrawn: () => given.map(({ returned }) => returned) }
  }

  it('is requested once, and continues while it is needed', async () => {
    const { waiting, notices, withdrawn } = await noticed()
    waiting.preempt(permits(1, 2), never)
    expect([notices.length, withdrawn()]).toEqual([2, [0, 0]])
  })

  it('is withdrawn if it is not needed', async () => {
    const { waiting, withdrawn } = await noticed()
    waiting.preempt(permits(2), never)
    expect(withdrawn()).toEqual([1, 0])
  })

  it('stays after the permit was returned, until it is taken', async () => {
    const { waiting, withdrawn } = await noticed()
    waiting.preempt([], (permit) => permit === 1)
    expect(withdrawn()).toEqual([0, 1])
  })

  it('is requested again with another queue claim', async () => {
    const { place, withdrawn } = await noticed()
    place.lose('expired')
    expect(withdrawn()).toEqual([1, 1])
  })

  it('is not requested before it has a queue claim, or after it is settled', async () => {
    const { waiting, notices, join } = scene()
    waiting.preempt(permits(1), never)
    await join()
    waiting.fail('over')
    waiting.preempt(permits(1), never)
    expect(notices).toHaveLength(0)
  })
})
