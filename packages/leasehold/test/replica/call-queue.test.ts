import { beforeEach, describe, expect, it } from 'vitest'
import { DEFAULT_LIMITS, isLeaseholdError, systemClock } from '../../src/port/index.ts'
import { type Call, CallDeadlines, CallQueue, type Taken } from '../../src/replica/calls/index.ts'
import { type Command, decodeEntry, encodeEntry } from '../../src/replica/entry.ts'
import { Machine } from '../../src/replica/state/machine.ts'

const release = (token: number): Command => ({
  do: 'release',
  request: { lease: 'l', token, keys: ['k'], request: undefined },
})

describe('the calls that wait to be sent', () => {
  const machine = new Machine({ holds() {}, removed() {}, capped() {}, gone() {} })
  const state = { asOf: 0, history: 0, revision: 0, checksum: 0, time: 0 }
  const initialize = { do: 'initialize', limits: DEFAULT_LIMITS, above: 0, semantics: 1 } as const
  machine.apply({ epoch: 'e', member: 'm', sequence: 1, ...state, commands: [initialize] }, 1, 0)
  let deadlines: CallDeadlines
  let queue: CallQueue

  beforeEach(() => {
    deadlines = new CallDeadlines(systemClock, 1000, () => undefined)
    // Each release has eight bytes.
    queue = new CallQueue(24, 0)
  })

  function add(command?: Command): Call {
    const call = deadlines.begin()
    queue.add(call, command)
    call.promise.catch(() => {})
    return call
  }

  function bytesOf({ commands }: Taken): Uint8Array {
    return encodeEntry({ epoch: 'e', member: 'm', sequence: 2, ...state, commands })
  }

  /** The tokens in the next entry, in their order. */
  function next(taken = queue.take(machine, [], 0)): number[] {
    const { commands } = decodeEntry(bytesOf(taken))!
    return commands.map((each) => (each.do === 'release' ? each.request.token : 0))
  }

  it('are sent in order, as many as fit', () => {
    for (let token = 1; token <= 7; token++) add(release(token))
    expect(next()).toEqual([1, 2, 3])
    add(release(8))
    expect([next(), next(), next()]).toEqual([[4, 5, 6], [7, 8], []])
    expect(queue.isEmpty).toBe(true)
  })

  it('leave out settled calls, and know the index of their commands', () => {
    const calls = [add(release(1)), add(release(2)), add(), add(release(3))]
    calls[1]!.fail(new Error('too late'))
    const taken = queue.take(machine, [{ do: 'leave' }], 0)
    expect(next(taken)).toEqual([0, 1, 3])
    expect(taken.calls).toEqual([calls[0], calls[2], calls[3]])
    expect(taken.calls.map(({ at, isSent }) => [at, isSent])).toEqual([
      [1, true],
      [2, false],
      [2, true],
    ])
  })

  it('are sent again before newer ones if their entry is not applied', () => {
    for (const token of [1, 2]) add(release(token))
    const taken = queue.take(machine, [], 0)
    const { calls, renewals } = taken
    const sent = { member: 'm', sequence: 2, asOf: 0, history: 0, bytes: bytesOf(taken) }
    add(release(3))
    queue.putBack([{ ...sent, calls, renewals, isOver: true }])
    expect(calls.map(({ isSent }) => isSent)).toEqual([false, false])
    expect(next()).toEqual([1, 2, 3])
  })

  it('refuse a command that fits into no entry, and send the others', async () => {
    add(release(1))
    const call = add({
      do: 'release',
      request: { lease: 'a lease with a long name', token: 2, keys: [], request: undefined },
    })
    add(release(3))
    const error = await call.promise.catch((thrown: unknown) => thrown)
    expect(isLeaseholdError(error, 'limit-exceeded')).toBe(true)
    expect(next()).toEqual([1, 3])
  })
})
