import { AGAIN, CLOSE, DONE } from 'leasehold/remote'
import { describe, expect, it } from 'vitest'
import { lease } from '../access/scene.ts'
import { Gate } from '../setup/changed-store.ts'
import { KEY, renewAfter, scene } from './scene.ts'

describe('a server that stops', () => {
  it('answers pending requests, refuses the rest, says goodbye and closes', async () => {
    const gate = new Gate()
    const { greeted, clock, server, inner } = await scene(
      { inFlight: 1 },
      { renew: renewAfter(gate) },
    )
    const busy = await greeted('a')
    const [idle, tied] = [await greeted('b'), await greeted('c', 0)]
    const { lease: id } = await lease(inner)
    tied.frame([1, 'tie', [id]])
    await clock.advance(0)
    busy.frame([1, 'renew', []], [2, 'renew', []], [3, 'watch', { prefix: '' }], [4, 'unwatch', 3])
    busy.frame([5, 'read', KEY], [6, 'watch', { prefix: '' }])
    await clock.advance(0)
    const closing = server.close()
    await clock.advance(0)
    expect(idle.heard).toMatchObject([['bye', expect.any(String)]])
    expect(idle.closed?.[0]).toBe(CLOSE.goingAway)
    expect(busy.heard).toMatchObject([
      [2, AGAIN],
      [5, AGAIN],
      ['bye', expect.any(String)],
    ])
    expect(busy.closed).toBeUndefined()
    gate.open()
    await closing
    expect(busy.heard[3]).toEqual([1, DONE])
    expect(busy.closed?.[0]).toBe(CLOSE.goingAway)
    tied.end()
    await clock.advance(0)
    expect((await inner.read({ lease: id })).lease).toBeDefined()
  })

  it('waits until all that was begun has been answered', async () => {
    const gates = [new Gate(), new Gate()]
    const { greeted, clock, server } = await scene(
      {},
      { renew: ([at]) => renewAfter(gates[Number(at)]!)([]) },
    )
    const socket = await greeted('c')
    socket.frame([1, 'renew', ['0']], [2, 'renew', ['1']])
    void server.close()
    gates[0]!.open()
    await clock.advance(0)
    expect([socket.heard, socket.closed]).toEqual([
      [
        ['bye', expect.any(String)],
        [1, DONE],
      ],
      undefined,
    ])
    gates[1]!.open()
    await clock.advance(0)
    expect([socket.heard[2], socket.closed?.[0]]).toEqual([[2, DONE], CLOSE.goingAway])
  })

  it('keeps its process alive until it has stopped', async () => {
    const { greeted, clock, server } = await scene({}, { renew: () => new Promise(() => {}) })
    const socket = await greeted('c')
    socket.frame([1, 'renew', []])
    const isKept: unknown[] = []
    Object.assign(clock, {
      timer: (_time: number, _run: () => void, keepsAlive?: boolean) => {
        isKept.push(keepsAlive)
        return { cancel: () => {} }
      },
    })
    void server.close()
    expect(isKept).toEqual([true])
  })

  it('does not wait longer than it should', async () => {
    const { greeted, clock, server } = await scene(
      { drain: 5000 },
      { renew: () => new Promise(() => {}) },
    )
    const socket = await greeted('c')
    socket.frame([1, 'renew', []])
    let isClosed = false
    const closing = server.close().then(() => {
      isClosed = true
    })
    await clock.advance(4999)
    expect([isClosed, socket.closed]).toEqual([false, undefined])
    await clock.advance(1)
    await closing
    expect(socket.closed?.[0]).toBe(CLOSE.goingAway)
  })

  it('does not wait for a client that has gone', async () => {
    const { greeted, clock, server } = await scene({}, { renew: () => new Promise(() => {}) })
    const socket = await greeted('c')
    socket.frame([1, 'renew', []])
    const closing = server.close()
    socket.end()
    await clock.advance(0)
    await closing
  })
})
