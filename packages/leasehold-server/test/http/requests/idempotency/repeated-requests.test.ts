import { LeaseholdError } from 'leasehold/port'
import { describe, expect, it } from 'vitest'
import { everybody } from '../../../../src/access/identity/principal.ts'
import type { Audience, HttpCall } from '../../../../src/http/requests/call.ts'
import { IdempotentRequests } from '../../../../src/http/requests/idempotency.ts'
import { Withdrawn } from '../../../../src/http/requests/waits.ts'
import { KeyReused, NotAvailable } from '../../../../src/http/responses/problem.ts'
import type { Call, Route } from '../../../../src/http/route.ts'
import { Gate } from '../../../setup/changed-store.ts'

/** A caller, which may leave. */
class Caller implements Audience {
  gone = false
  readonly #left: (() => void)[] = []

  whenGone(left: () => void): void {
    this.#left.push(left)
  }

  leave(): void {
    this.gone = true
    for (const left of this.#left) left()
  }
}

type Handle = (call: Call & { readonly audience: Audience }) => Promise<unknown>

function scene(handle: Handle) {
  const repeats = new IdempotentRequests()
  const principal = everybody()
  const asked: (string | undefined)[] = []
  let inside = 0
  const route = {
    handle: (call: Call & { readonly audience: Audience }) => {
      asked.push(call.request)
      return handle(call)
    },
  } as unknown as Route
  const ask = (query: object = {}, more: object = {}, caller = new Caller()) => {
    const call = {
      ...{ query, body: undefined, principal, audience: caller },
      header: (name: string) => (name === 'idempotency-key' ? 'k1' : undefined),
      get gone() {
        return caller.gone
      },
      admitAgain: () => {
        inside++
        return { principal, leave: () => void inside-- }
      },
      sharedBy: (audience: Audience, _admission: unknown, request: string) => ({
        ...{ audience, request },
      }),
      ...more,
    } as unknown as HttpCall
    const answer = repeats.answer(route, call, 'id')
    answer.catch(() => {})
    return { answer, caller }
  }
  return { ask, asked, principal, inside: () => inside }
}

describe('requests with one Idempotency-Key', () => {
  it('are executed once while the first is pending, and all get its answer', async () => {
    const gate = new Gate()
    const { ask, asked, inside } = scene(async () => {
      await gate.opened
      return 'done'
    })
    const all = [ask(), ask({ wait: '5s' }), ask()]
    await Promise.resolve()
    expect([asked, inside()]).toEqual([['id'], 1])
    gate.open()
    expect(await Promise.all(all.map(({ answer }) => answer))).toEqual(['done', 'done', 'done'])
    expect(inside()).toBe(0)
    expect(await ask().answer).toBe('done')
    // Afterwards the store knows the request by the same id.
    expect(asked).toEqual(['id', 'id'])
  })

  it('continue while one of their callers stays, and are aborted with the last', async () => {
    const gate = new Gate()
    let audience: Audience | undefined
    let left = 0
    const { ask } = scene(async (call) => {
      audience = call.audience
      audience.whenGone(() => left++)
      await gate.opened
      if (audience.gone) audience.whenGone(() => left++)
      return 'done'
    })
    const [one, two] = [ask(), ask()]
    await Promise.resolve()
    one.caller.leave()
    expect([audience?.gone, left]).toEqual([false, 0])
    two.caller.leave()
    expect([audience?.gone, left]).toEqual([true, 1])
    gate.open()
    await two.answer
    expect(left).toBe(2)
  })

  it('are executed again for a caller that arrives during the abort of the first', async () => {
    const gates = [new Gate(), new Gate()]
    const { ask, asked } = scene(async () => {
      const at = asked.length
      await gates[at - 1]!.opened
      return at
    })
    const first = ask()
    await Promise.resolve()
    first.caller.leave()
    const [second, third] = [ask(), ask()]
    third.caller.gone = true
    await Promise.resolve()
    expect(asked).toHaveLength(1)
    gates[0]!.open()
    expect(await first.answer).toBe(1)
    gates[1]!.open()
    expect(await second.answer).toBe(2)
    await expect(third.answer).rejects.toMatchObject({ code: 'aborted' })
  })

  it('of a token that was created again are executed again', async () => {
    for (const how of ['another', 'ended']) {
      const gate = new Gate()
      const { ask, asked, principal } = scene(() => gate.opened)
      const first = ask()
      if (how === 'ended') principal.ended = 'its access token was revoked'
      const other = ask({}, how === 'another' ? { principal: everybody() } : {})
      await Promise.resolve()
      expect(asked).toHaveLength(1)
      gate.open()
      await Promise.all([first.answer, other.answer])
      expect(asked).toHaveLength(2)
    }
  })

  it('that got nothing are answered the same, without asking again', async () => {
    const refusal = new NotAvailable('busy', 'no')
    const { ask, asked } = scene(() => Promise.reject(refusal))
    await expect(ask().answer).rejects.toBe(refusal)
    await expect(ask().answer).rejects.toBe(refusal)
    expect(asked).toHaveLength(1)
  })

  it.each(['invalid-argument', 'unauthenticated', 'forbidden'] as const)(
    'may be corrected after they were refused with %s',
    async (code) => {
      let error: Error | undefined = new LeaseholdError(code, 'x')
      const { ask } = scene(async () => {
        if (error) throw error
        return 'done'
      })
      await expect(ask({ ttl: '1s' }).answer).rejects.toBe(error)
      error = undefined
      expect(await ask({ ttl: '2s' }).answer).toBe('done')
      await expect(ask({ ttl: '3s' }).answer).rejects.toBeInstanceOf(KeyReused)
    },
  )

  it('may not be changed after any other failure', async () => {
    const fault = new LeaseholdError('unknown-outcome', 'x')
    const { ask } = scene(() => Promise.reject(fault))
    await expect(ask({ ttl: '1s' }).answer).rejects.toBe(fault)
    await expect(ask({ ttl: '2s' }).answer).rejects.toBeInstanceOf(KeyReused)
    await expect(ask({ ttl: '1s' }).answer).rejects.toBe(fault)
  })
})

describe('the content of a request', () => {
  const body = (given: unknown) => ({ body: given })

  it('is the same in another order of its fields, and with another wait', async () => {
    const { ask } = scene(async () => 'done')
    const first = { ttl: '1s', labels: { a: '1', b: '2' }, claims: [{ key: 'x', value: 'y' }] }
    const same = { claims: [{ value: 'y', key: 'x' }], labels: { b: '2', a: '1' }, ttl: '1s' }
    await ask({ wait: '1s', limit: 1 }, body(first)).answer
    expect(await ask({ limit: 1, wait: '2s' }, body(same)).answer).toBe('done')
    expect(await ask({ limit: 1 }, body(same)).answer).toBe('done')
  })

  it.each([
    [{ list: [2, 1] }, 'list'],
    [{ list: [1, 2], more: null }, 'more'],
    [{}, 'list'],
    [{ list: [1, 2], b: 1, a: 1 }, 'a, b'],
  ])('is another with %j', async (given, names) => {
    const { ask, asked } = scene(async () => 'done')
    await ask({}, body({ list: [1, 2] })).answer
    await expect(ask({}, body(given)).answer).rejects.toThrowError(
      `Idempotency-Key "k1" was first used with a different ${names}: `,
    )
    expect(asked).toHaveLength(1)
  })
})

describe('a claim that was withdrawn because nobody waited for it', () => {
  it('is claimed again under another id, by the next caller', async () => {
    const reason = new LeaseholdError('aborted', 'gone')
    const errors = [new Withdrawn(reason), new Withdrawn(reason)]
    const { ask, asked } = scene(async () => {
      const error = errors.shift()
      if (error) throw error
      return 'done'
    })
    await expect(ask().answer).rejects.toBe(reason)
    await expect(ask().answer).rejects.toBe(reason)
    expect(await ask().answer).toBe('done')
    expect(asked).toEqual(['id', 'id-1', 'id-2'])
  })

  it('is claimed again at once for a caller that still waits', async () => {
    const errors = [new Withdrawn(), new Withdrawn()]
    const { ask, asked } = scene(async () => {
      const error = errors.shift()
      if (error) throw error
      return 'done'
    })
    expect(await ask().answer).toBe('done')
    expect(asked).toEqual(['id', 'id-1', 'id-2'])
  })

  it('is not claimed again without end', async () => {
    const { ask, asked } = scene(() => Promise.reject(new Withdrawn()))
    await expect(ask().answer).rejects.toThrowError(/abandoned 1000 times: use another key/)
    await expect(ask().answer).rejects.toBeInstanceOf(KeyReused)
    expect(asked).toHaveLength(1002)
  })
})
