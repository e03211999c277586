import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { Fence } from '../../src/fence/index.ts'
import { isLeaseholdError, Leasehold } from '../../src/index.ts'
import { testStore } from '../../src/testing/index.ts'

/** One attempt to be admitted, with the times before the request and after the answer. */
export interface Try {
  readonly token: number
  readonly asked: number
  readonly answered: number
  readonly admitted: boolean
}

/**
 * The violations: a lower token was admitted although its attempt began after a higher one was
 * answered. (If two attempts overlap in time, either may have been first.)
 */
export function fallsIn(tries: readonly Try[]): string[] {
  const admitted = tries.filter((each) => each.admitted)
  const answered = [...admitted].sort((a, b) => a.answered - b.answered)
  const asked = [...admitted].sort((a, b) => a.asked - b.asked)
  const falls: string[] = []
  let highest = 0
  let next = 0
  for (const each of asked) {
    while (next < answered.length && answered[next]!.answered < each.asked) {
      highest = Math.max(highest, answered[next++]!.token)
    }
    if (each.token < highest) falls.push(`${each.token} was admitted after ${highest}`)
  }
  return falls
}

export async function attempt(fence: Fence, resource: string, token: number): Promise<Try> {
  const asked = performance.now()
  const admitted = await fence.admit(resource, token).then(
    () => true,
    (error: unknown) => {
      if (!isLeaseholdError(error, 'stale-token')) throw error
      expect(error.token).toBe(token)
      expect(error.highest).toBeGreaterThan(token)
      return false
    },
  )
  return { token, asked, answered: performance.now(), admitted }
}

/** The numbers from 1 to `count` roughly in order, because some holders are late. */
export function nearlyInOrder(count: number, disorder: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1)
    .map((token) => ({ token, at: token + Math.random() * disorder }))
    .sort((a, b) => a.at - b.at)
    .map(({ token }) => token)
}

let resources = 0
export const newResource = () => `reports/${resources++}`

const stale = (token: number, highest: number) => ({
  name: 'LeaseholdError',
  code: 'stale-token',
  outcome: 'refused',
  token,
  highest,
})

/** What every fence must do. `open` may return the same fence each time. */
export function itIsAFence(open: () => Fence): void {
  it('refuses a holder that was paused too long, with the reason', async () => {
    const fence = open()
    const { store, clock } = testStore()
    const one = await Leasehold.open(store, { clock, holder: 'one' })
    const two = await Leasehold.open(store, { clock, holder: 'two' })
    const resource = newResource()
    const late = (await one.lock(resource, { ttl: '10s' })).token
    await fence.admit(resource, late)
    clock.stall(11_000)
    const next = (await two.lock(resource, { ttl: '10s' })).token
    await fence.admit(resource, next)
    const refused = fence.admit(resource, late)
    await expect(refused).rejects.toMatchObject(stale(late, next))
    await expect(refused).rejects.toThrow(
      `token ${late} for "${resource}" is stale: it has seen token ${next}`,
    )
    await fence.admit(resource, next)
    await Promise.all([one.close(), two.close()])
  })

  it.each([
    [9, 10],
    [99, 100],
    [999, 1000],
    [99_999_999_999_999, 100_000_000_000_000],
    [Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER],
  ])('compares %d with %d as numbers', async (lower, higher) => {
    const fence = open()
    const resource = newResource()
    await fence.admit(resource, lower)
    await fence.admit(resource, lower)
    await fence.admit(resource, higher)
    await expect(fence.admit(resource, lower)).rejects.toMatchObject(stale(lower, higher))
    await fence.admit(resource, higher)
  })

  it('keeps resources apart, whatever their names', async () => {
    const fence = open()
    const names = ['a', 'a/b', 'A', "it's; drop table", '{x}', 'schön ✓', ' ', 'x'.repeat(512)]
    const own = newResource()
    for (const [index, name] of names.entries())
      await fence.admit(own + name.slice(0, 480), 50 - index)
    for (const [index, name] of names.entries()) {
      const highest = 50 - index
      const refused = fence.admit(own + name.slice(0, 480), highest - 1)
      await expect(refused).rejects.toMatchObject(stale(highest - 1, highest))
    }
  })

  it.each([['10'], [0], [-1], [1.5], [NaN], [2 ** 53], [10n], [undefined]])(
    'refuses %s as a token',
    async (token) => {
      const refused = open().admit(newResource(), token as number)
      await expect(refused).rejects.toMatchObject({ code: 'invalid-argument', outcome: 'refused' })
    },
  )

  it.each([[''], ['x'.repeat(513)], ['a\nb'], [7]])('takes %j for no resource', async (name) => {
    const refused = open().admit(name as string, 1)
    await expect(refused).rejects.toMatchObject({ code: 'invalid-argument' })
  })

  it('never admits a lower token after a higher one under load, and never refuses the newest', async () => {
    const resource = newResource()
    const count = 400
    const tokens = nearlyInOrder(count, 60)
    const fences = [open(), open(), open()]
    const tries: Try[] = []
    const lanes = Array.from({ length: 24 }, async (_, lane) => {
      for (let token = tokens.shift(); token !== undefined; token = tokens.shift()) {
        tries.push(await attempt(fences[lane % fences.length]!, resource, token))
      }
    })
    await Promise.all(lanes)
    expect(fallsIn(tries)).toEqual([])
    expect(tries.find(({ token }) => token === count)?.admitted).toBe(true)
    // The test must admit some tokens and refuse some, otherwise it shows nothing.
    const admitted = tries.filter((each) => each.admitted).length
    expect(admitted).toBeGreaterThan(1)
    expect(admitted).toBeLessThan(count)
    await expect(open().admit(resource, count - 1)).rejects.toMatchObject(stale(count - 1, count))
  })
}

/** An engine that keeps a fence, for the crash test. */
export interface Crashing {
  /** The fence, once for each client library. */
  readonly fences: readonly Fence[]
  readonly lives: number
  crash(): Promise<void>
  restart(): Promise<void>
}

/** Sends many requests while the engine crashes. The fence must remember every admitted token. */
export async function remembersAcrossCrashes(engine: Crashing): Promise<void> {
  const resource = newResource()
  const tries: Try[] = []
  let token = 0
  let isOver = false
  const lane = async (fence: Fence, late: number) => {
    while (!isOver) {
      token++
      const mine = Math.max(1, token - late)
      try {
        tries.push(await attempt(fence, resource, mine))
      } catch (error) {
        // While the engine is down the outcome is unknown. Any other error is a bug.
        if (!isLeaseholdError(error, 'unknown-outcome')) throw error
        await pause(5)
      }
    }
  }
  for (let life = 0; life < engine.lives; life++) {
    isOver = false
    const lates = [0, 0, 0, 0, 40, 40]
    const lanes = lates.map((late, at) => lane(engine.fences[at % engine.fences.length]!, late))
    const enough = tries.length + 300
    const failed = Promise.all(lanes)
    for (let ms = 0; tries.length < enough && ms < 15_000; ms += 5) {
      await Promise.race([pause(5), failed])
    }
    await engine.crash()
    isOver = true
    await engine.restart()
    await failed
    const highest = Math.max(...tries.filter((each) => each.admitted).map((each) => each.token))
    const late = engine.fences[0]!.admit(resource, highest - 1)
    await expect(late).rejects.toMatchObject({ code: 'stale-token' })
  }
  expect(fallsIn(tries)).toEqual([])
  expect(tries.length).toBeGreaterThan(engine.lives * 300)
  expect(tries.filter((each) => !each.admitted).length).toBeGreaterThan(20)
}
