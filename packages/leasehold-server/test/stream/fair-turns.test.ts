import { DONE } from 'leasehold/remote'
import { describe, expect, it } from 'vitest'
import { scene, type TestSocket } from './scene.ts'

/** Streams whose requests are recorded by the name in them, in the order of execution. */
async function noted(options: { readonly inFlight?: number; readonly takes?: number } = {}) {
  const { takes = 0, ...stream } = options
  const order: string[] = []
  const made = await scene(stream, {
    renew: async ([name]) => {
      order.push(name!)
      made.clock.stall(takes)
      return { lost: [], capped: [] }
    },
  })
  const ask = (socket: TestSocket, name: string, count: number) =>
    socket.frame(...Array.from({ length: count }, (_, at) => [at, 'renew', [name]]))
  /** The served streams, and how often in a row. */
  const served = () => {
    const runs: [name: string, count: number][] = []
    for (const name of order) {
      const last = runs.at(-1)
      if (last?.[0] === name) last[1]++
      else runs.push([name, 1])
    }
    return runs
  }
  return { ...made, ask, served, order }
}

describe('streams of one principal', () => {
  it('take turns, however many frames one of them sends', async () => {
    const { greeted, clock, ask, served } = await noted()
    const [a, b, c] = [await greeted('a'), await greeted('b'), await greeted('c')]
    ask(a, 'a', 100)
    for (let frame = 0; frame < 3; frame++) {
      ask(a, 'a', 70)
      ask(b, 'b', 70)
    }
    ask(c, 'c', 10)
    await clock.advance(0)
    // A turn has 65 steps, and opening a frame is one of them.
    expect(served().slice(0, 4)).toEqual([
      ['a', 64 + 64],
      ['b', 64],
      ['c', 10],
      ['a', 64],
    ])
  })

  it('take turns, however many pings one of them sends', async () => {
    const { greeted, clock, ask, served } = await noted()
    const [a, b] = [await greeted('a'), await greeted('b')]
    for (let ping = 0; ping < 80; ping++) a.emit('ping', Buffer.alloc(0))
    ask(a, 'a', 200)
    ask(b, 'b', 10)
    await clock.advance(0)
    expect(served()).toEqual([
      ['a', 64],
      ['b', 10],
      ['a', 200 - 64],
    ])
  })
})

describe('a turn', () => {
  it('ends after five milliseconds, but has two steps at least', async () => {
    const { greeted, clock, ask, served } = await noted({ takes: 5 })
    const [a, b] = [await greeted('a'), await greeted('b')]
    ask(a, 'a', 4)
    expect(served()).toEqual([['a', 1]])
    ask(b, 'b', 4)
    await clock.advance(0)
    // The turns: a 1, a 2, b 1, a 1, b 2, b 1. To open a frame is a step.
    expect(served()).toEqual([
      ['a', 1 + 2],
      ['b', 1],
      ['a', 1],
      ['b', 2 + 1],
    ])
  })

  it('continues while less than five milliseconds have passed', async () => {
    const { greeted, ask, served } = await noted({ takes: 1 })
    ask(await greeted('a'), 'a', 20)
    expect(served()).toEqual([['a', 5]])
  })

  it('ties as many leases as fit into its time', async () => {
    let watched = 0
    const made = await scene(
      {},
      {
        watch: (target) => {
          if ('lease' in target) made.clock.stall(++watched)
          return { close: () => {} }
        },
      },
    )
    const socket = await made.greeted('c', 0)
    socket.frame([1, 'tie', Array.from({ length: 300 }, (_, at) => `1.${at}`)])
    expect(watched).toBe(256)
    await made.clock.advance(0)
    expect([watched, socket.heard]).toEqual([300, [[1, DONE]]])
  })

  it('does not follow another immediately, even if the store answers at once', async () => {
    const { greeted, clock, ask, order } = await noted({ inFlight: 1 })
    ask(await greeted('a'), 'a', 3)
    clock.defer(() => order.push('another'))
    await clock.advance(0)
    // The second is executed in the tick that the first has requested.
    expect(order).toEqual(['a', 'a', 'another', 'a'])
  })
})
