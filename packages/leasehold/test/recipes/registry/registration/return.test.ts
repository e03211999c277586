import { describe, expect, it } from 'vitest'
import type { Client, Hold, HoldOptions } from '../../../../src/client/index.ts'
import { LeaseholdError } from '../../../../src/index.ts'
import type { LossReason } from '../../../../src/port/index.ts'
import { type OnRevoked, Presence } from '../../../../src/recipes/registry/registration/presence.ts'
import { TestClock } from '../../../../src/testing/index.ts'

class Here extends Presence {
  readonly key = 'here'
  #text = 'first'

  constructor(client: Client, onRevoked?: OnRevoked) {
    super(client, onRevoked)
  }

  protected value(): string {
    return this.#text
  }

  protected timing(): HoldOptions {
    return {}
  }

  come(): Promise<this> {
    return this.enter({})
  }

  say(text: string): Promise<void> {
    this.#text = text
    return this.publish()
  }
}

/** A hold whose end the test controls and whose calls it sees. */
function grant(token: number) {
  const ending = new AbortController()
  const calls: string[] = []
  const updates: ((error: Error) => void)[] = []
  const hold = {
    lease: `lease-${token}`,
    claimToken: token,
    signal: ending.signal,
    get held() {
      return !ending.signal.aborted
    },
    update(text: string) {
      calls.push(`update ${text}`)
      return new Promise((_resolve, reject) => updates.push(reject))
    },
    async release() {
      calls.push('release')
    },
    async [Symbol.asyncDispose]() {
      calls.push('dispose')
    },
  } as unknown as Hold
  const lose = (reason: LossReason) =>
    ending.abort(new LeaseholdError('lost', 'it is gone', { reason }))
  return { hold, calls, updates, lose }
}

interface Ask {
  readonly options: HoldOptions
  resolve(hold: Hold): void
  reject(error: Error): void
}

/** A presence whose client gets its answers from the test. */
function scene(onRevoked?: OnRevoked) {
  const clock = new TestClock()
  const asks: Ask[] = []
  const events: string[] = []
  const client = {
    clock,
    random: { next: () => 0.5, id: () => 'an id' },
    hold: (_claims: unknown, options: HoldOptions) =>
      new Promise((resolve, reject) => asks.push({ options, resolve, reject })),
    emit: ({ event }: { readonly event: string }) => events.push(event),
  } as unknown as Client
  const me = new Here(client, onRevoked)
  const come = async (granted = grant(1)) => {
    const coming = me.come()
    asks[0]!.resolve(granted.hold)
    await coming
    return granted
  }
  return { clock, asks, events, me, come }
}

const refusal = (code: 'forbidden' | 'closed' | 'aborted') => new LeaseholdError(code, 'no')

describe('a presence', () => {
  it('is absent at first, with no lease and no token', async () => {
    const { me, come } = scene()
    expect([me.state, me.lease, me.token]).toEqual(['absent', undefined, undefined])
    await come()
    expect([me.state, me.lease, me.token]).toEqual(['present', 'lease-1', 1])
  })

  it('can be released before it is present', async () => {
    const { me } = scene()
    await me.release()
    expect(me.state).toBe('ended')
  })

  it('that is present publishes its value with the claim, and releases its lease once', async () => {
    const { me, come } = scene()
    const { calls } = await come()
    expect(calls).toEqual([])
    await me.release()
    await me.release()
    expect(calls).toEqual(['release'])
  })

  it('that was released reports nothing, whatever happens to its lease', async () => {
    const { clock, asks, events, me, come } = scene()
    const { lose } = await come()
    await me.release()
    lose('expired')
    await clock.advance(0)
    expect([asks.length, events, me.state]).toEqual([1, [], 'ended'])
  })

  it('that loses its lease at once tries again', async () => {
    const { asks, events, me, come } = scene()
    const lost = grant(1)
    lost.lose('expired')
    await come(lost)
    expect([asks.length, events, me.state]).toEqual([2, ['absent'], 'absent'])
  })

  it('that may return after a revocation does not after its client is closed', async () => {
    const { clock, asks, events, come } = scene('return')
    const { lose } = await come()
    lose('closed')
    await clock.advance(0)
    expect([asks.length, events]).toEqual([1, ['ended']])
  })
})

describe('a presence that returns', () => {
  async function comingBack() {
    const all = scene()
    const first = await all.come()
    first.lose('expired')
    await all.clock.advance(0)
    expect(all.asks).toHaveLength(2)
    return { ...all, ask: all.asks[1]! }
  }

  it('stops waiting when it is released, and releases a late grant', async () => {
    const { clock, events, me, ask } = await comingBack()
    expect(ask.options.signal?.aborted).toBe(false)
    await me.release()
    expect(ask.options.signal?.aborted).toBe(true)
    const late = grant(2)
    ask.resolve(late.hold)
    await clock.advance(0)
    expect([late.calls, events, me.state]).toEqual([['dispose'], ['absent'], 'ended'])
  })

  it('publishes what has changed since its claim was sent', async () => {
    const { clock, me, ask } = await comingBack()
    await expect(me.say('second')).rejects.toMatchObject({ code: 'lost' })
    const back = grant(2)
    ask.resolve(back.hold)
    await clock.advance(0)
    expect([back.calls, me.state]).toEqual([['update second'], 'present'])
  })

  it('does not retry after it was released', async () => {
    const { clock, asks, events, me, ask } = await comingBack()
    await me.release()
    ask.reject(refusal('aborted'))
    await clock.advance(60_000)
    expect([asks.length, events]).toEqual([2, ['absent']])
  })

  it('ends if its client is closed', async () => {
    const { clock, asks, events, me, ask } = await comingBack()
    ask.reject(refusal('closed'))
    await clock.advance(60_000)
    expect([asks.length, events, me.state]).toEqual([2, ['absent', 'ended'], 'ended'])
    expect(me.signal.reason).toMatchObject({ code: 'closed' })
  })

  it('is not blocked by an unanswered update', async () => {
    const { clock, asks, me, come } = scene()
    const { calls, updates, lose } = await come()
    const said = me.say('second')
    lose('expired')
    await clock.advance(0)
    asks[1]!.reject(refusal('forbidden'))
    await clock.advance(0)
    updates[0]!(new LeaseholdError('unknown-outcome', 'no answer'))
    await expect(said).rejects.toMatchObject({ code: 'unknown-outcome' })
    await clock.advance(60_000)
    expect(asks).toHaveLength(3)
    expect(calls).toEqual(['update second'])
  })
})
