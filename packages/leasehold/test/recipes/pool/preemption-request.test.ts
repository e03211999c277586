import { describe, expect, it } from 'vitest'
import { Conflict } from '../../../src/client/index.ts'
import { PreemptionRequest } from '../../../src/recipes/pool/preemption-request.ts'
import { TestClock } from '../../../src/testing/index.ts'

const PERIOD = 10_000
const REST = 1000

/** A preemption request on a store that answers when the test says so. */
function scene() {
  const clock = new TestClock()
  const asked: { options: unknown; answer: (hold: unknown) => void; fail: () => void }[] = []
  const revoked: string[] = []
  const reported: string[] = []
  let returned = 0
  let revoking: () => Promise<void> = async () => {}
  const client = {
    clock,
    holder: 'h',
    emit: ({ event }: { event: string }) => reported.push(event),
    tryHold: (_claims: unknown, options: unknown) =>
      new Promise((resolve, reject) => {
        asked.push({ options, answer: resolve, fail: () => reject(new Error('no answer')) })
      }),
    store: {
      revoke: async ({ target }: { target: { key: string } }) => {
        revoked.push(target.key)
        await revoking()
      },
    },
  }
  const hold = { [Symbol.asyncDispose]: async () => void returned++ }
  const busy = Object.create(Conflict.prototype) as Conflict
  const notice = new PreemptionRequest(
    { client, prefix: 'pool/p/notice/', period: PERIOD } as never,
    { token: 7, keys: ['g0', 'g1'], holder: 'x' } as never,
    { tenant: 't', priority: 1 } as never,
    3,
  )
  return {
    ...{ clock, notice, asked, revoked, reported, hold, busy },
    returned: () => returned,
    failRevokes: (run: () => Promise<void>) => {
      revoking = run
    },
  }
}

describe('a preemption request', () => {
  it('holds its notice while its process lives, and revokes the keys after the period', async () => {
    const { clock, asked, revoked, reported, hold } = scene()
    expect(asked.map(({ options }) => options)).toEqual([{ ttl: 15_000 }])
    asked[0]!.answer(hold)
    await clock.advance(PERIOD - 1)
    expect([reported, revoked]).toEqual([['notice'], []])
    await clock.advance(1)
    expect(revoked).toEqual(['g0', 'g1'])
  })

  it('that is withdrawn releases its notice, and revokes nothing', async () => {
    const { clock, notice, asked, revoked, hold, returned } = scene()
    asked[0]!.answer(hold)
    await clock.advance(PERIOD - 1)
    notice.withdraw()
    await clock.advance(2 * PERIOD)
    expect([returned(), revoked]).toEqual([1, []])
  })

  it('that is withdrawn before the store answers releases its notice afterwards', async () => {
    const { clock, notice, asked, revoked, reported, hold, returned } = scene()
    notice.withdraw()
    asked[0]!.answer(hold)
    await clock.advance(2 * PERIOD)
    expect([returned(), revoked, reported]).toEqual([1, [], []])
  })

  it.each(['busy', 'failed'] as const)('is tried again after a second (%s)', async (how) => {
    const { clock, asked, busy } = scene()
    const refuse = () => (how === 'busy' ? asked.at(-1)!.answer(busy) : asked.at(-1)!.fail())
    refuse()
    await clock.advance(REST - 1)
    expect(asked).toHaveLength(1)
    await clock.advance(1)
    expect(asked).toHaveLength(2)
    refuse()
    await clock.advance(REST)
    expect(asked).toHaveLength(3)
  })

  it.each(['busy', 'failed'] as const)(
    'does not retry if it was withdrawn before the answer (%s)',
    async (how) => {
      const { clock, notice, asked, busy } = scene()
      notice.withdraw()
      if (how === 'busy') asked[0]!.answer(busy)
      else asked[0]!.fail()
      await clock.advance(10 * REST)
      expect(asked).toHaveLength(1)
    },
  )

  it('retries a failed revocation after a second', async () => {
    const { clock, asked, revoked, hold, failRevokes } = scene()
    let failures = 1
    failRevokes(async () => {
      if (failures-- > 0) throw new Error('no answer')
    })
    asked[0]!.answer(hold)
    await clock.advance(PERIOD)
    expect(revoked).toEqual(['g0'])
    await clock.advance(REST)
    expect(revoked).toEqual(['g0', 'g0', 'g1'])
  })

  it('does not retry if it was withdrawn meanwhile', async () => {
    const { clock, notice, asked, revoked, hold, failRevokes } = scene()
    failRevokes(async () => {
      notice.withdraw()
      throw new Error('no answer')
    })
    asked[0]!.answer(hold)
    await clock.advance(PERIOD + 10 * REST)
    expect(revoked).toEqual(['g0'])
  })
})
