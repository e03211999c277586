import type { LeaseStore, Query } from 'leasehold/port'
import { CLOSE, DONE } from 'leasehold/remote'
import { describe, expect, it } from 'vitest'
import { lease } from '../access/scene.ts'
import { Gate } from '../setup/changed-store.ts'
import { KEY, renewAfter, scene } from './scene.ts'

describe('a client that sends many requests', () => {
  it('is not read while as much is in flight as may be', async () => {
    const gate = new Gate()
    let calls = 0
    const { greeted, clock } = await scene(
      { inFlight: 2 },
      { renew: renewAfter(gate, () => calls++) },
    )
    const socket = await greeted('c')
    socket.frame([1, 'renew', []], [2, 'renew', []], [3, 'renew', []])
    await clock.advance(0)
    expect([calls, socket.isPaused]).toEqual([2, true])
    gate.open()
    await clock.advance(0)
    expect([calls, socket.isPaused, socket.heard.length]).toEqual([3, false, 3])
  })

  it('runs sixteen reads at a time, and other calls beside them', async () => {
    const gate = new Gate()
    let reads = 0
    const { greeted, clock } = await scene({}, {
      async read(this: LeaseStore, query: Query) {
        if (!('key' in query)) return this.read(query)
        reads++
        await gate.opened
        return this.read(query)
      },
    } as Partial<LeaseStore>)
    const socket = await greeted('c')
    const readings = (count: number, from: number) =>
      Array.from({ length: count }, (_, at) => [from + at, 'read', KEY])
    socket.frame(...readings(16, 1), [99, 'renew', []], ...readings(4, 17))
    socket.frame([100, 'renew', []])
    await clock.advance(0)
    expect([reads, socket.isPaused, socket.heard]).toEqual([16, true, [[99, DONE]]])
    gate.open()
    await clock.advance(0)
    expect([reads, socket.isPaused, socket.heard.length]).toEqual([20, false, 22])
  })

  it('has readings made beside any number of other calls', async () => {
    const gate = new Gate()
    const { greeted, clock } = await scene({}, { renew: renewAfter(gate) })
    const socket = await greeted('c')
    socket.frame(...Array.from({ length: 16 }, (_, at) => [at, 'renew', []]), [99, 'read', KEY])
    await clock.advance(0)
    expect(socket.heard).toMatchObject([[99, DONE, { count: 0 }]])
  })

  it('has the next frame opened when less than a megabyte is pending', async () => {
    const gate = new Gate()
    let calls = 0
    const { greeted, clock } = await scene(
      { frameBytes: 4 << 20 },
      { renew: renewAfter(gate, () => calls++) },
    )
    const socket = await greeted('c')
    const large = JSON.stringify([[1, 'renew', ['x'.repeat(600_000)]]])
    for (let at = 0; at < 3; at++) socket.text(large)
    await clock.advance(0)
    expect([calls, socket.isPaused]).toEqual([2, true])
    gate.open()
    await clock.advance(0)
    expect([calls, socket.isPaused]).toEqual([3, false])
    socket.text(large)
    await clock.advance(0)
    expect(calls).toBe(4)
  })

  it('has another frame opened only while less than a whole megabyte is pending', async () => {
    const gates = [new Gate(), new Gate()] as const
    let calls = 0
    const { greeted, clock } = await scene(
      { frameBytes: 4 << 20 },
      { renew: () => renewAfter(gates[calls++ === 0 ? 0 : 1])([]) },
    )
    const socket = await greeted('c')
    const empty = JSON.stringify([[1, 'renew', ['']]])
    socket.text(empty.replace('""', `"${'x'.repeat((1 << 20) - empty.length)}"`))
    socket.text(empty)
    await clock.advance(0)
    expect([calls, socket.isPaused]).toEqual([1, true])
    gates[0].open()
    await clock.advance(0)
    // The megabyte has been answered, so that it counts no more.
    socket.text(empty)
    await clock.advance(0)
    expect([calls, socket.isPaused]).toEqual([3, false])
  })

  it('is not read while it does not read, and is read again afterwards', async () => {
    const { greeted, clock, server } = await scene({ highWater: 1000 })
    const socket = await greeted('c')
    socket.drained()
    socket.bufferedAmount = 1001
    socket.frame([1, 'read', KEY])
    await clock.advance(0)
    expect([server.stats.requests, socket.isPaused]).toEqual([0, true])
    await clock.advance(60_000)
    // It does not read, so its silence counts.
    expect(socket.closed?.[0]).toBe(CLOSE.silent)
    const second = await greeted('d')
    second.bufferedAmount = 1001
    second.frame([1, 'read', KEY])
    await clock.advance(0)
    second.drained()
    await clock.advance(0)
    expect([second.heard.length, second.isPaused]).toEqual([1, false])
  })

  it('is disconnected when more than may waits for it', async () => {
    const { greeted, clock, inner, server } = await scene({ buffered: 1000 })
    const socket = await greeted('c')
    socket.frame([1, 'watch', { prefix: '' }])
    await clock.advance(0)
    expect(socket.heard).toMatchObject([['notice', 1, { type: 'watching' }]])
    socket.bufferedAmount = 1001
    await lease(inner, ['a'])
    await clock.advance(0)
    expect([socket.closed?.[0], server.stats.dropped]).toEqual([CLOSE.slow, 1])
  })

  it('waits as long as its quota of bytes says', async () => {
    const { greeted, as, clock, server } = await scene()
    const socket = await greeted('c', undefined, await as('ann', { bytesPerSecond: 100 }))
    await clock.advance(10_000)
    const frame = JSON.stringify([[1, 'read', { key: 'k'.repeat(127) }]])
    expect(frame.length).toBe(150)
    socket.text(frame)
    await clock.advance(499)
    expect([server.stats.requests, socket.isPaused]).toEqual([0, true])
    await clock.advance(1)
    expect([server.stats.requests, socket.isPaused]).toEqual([1, false])
  })

  it('is read later when more than 64 messages arrive in one tick', async () => {
    const { greeted, clock, server } = await scene()
    const socket = await greeted('c')
    await clock.advance(1)
    for (let at = 0; at < 64; at++) socket.emit('pong')
    expect(socket.isPaused).toBe(false)
    socket.frame([1, 'read', KEY])
    expect([socket.isPaused, server.stats.requests]).toEqual([true, 0])
    await clock.advance(0)
    expect([socket.isPaused, server.stats.requests]).toEqual([false, 1])
    for (let at = 0; at < 64; at++) socket.emit('pong')
    expect(socket.isPaused).toBe(false)
    socket.emit('pong')
    expect(socket.isPaused).toBe(true)
    await clock.advance(0)
    expect(socket.isPaused).toBe(false)
  })

  it('has 64 requests carried out in one turn', async () => {
    const { greeted, clock, server } = await scene()
    const socket = await greeted('c')
    socket.frame(...Array.from({ length: 100 }, (_, at) => [at, 'renew', []]))
    expect([server.stats.requests, socket.isPaused]).toEqual([64, true])
    await clock.advance(0)
    expect([server.stats.requests, socket.isPaused]).toEqual([100, false])
  })
})

describe('pings', () => {
  it('are answered once in a tick, the last of them, if the client reads', async () => {
    const { greeted, clock } = await scene({ highWater: 1000 })
    const socket = await greeted('c')
    for (const text of ['1', '2', '3']) socket.emit('ping', Buffer.from(text))
    expect(socket.pongs).toEqual([])
    await clock.advance(0)
    expect(socket.pongs).toEqual(['3'])
    socket.bufferedAmount = 1001
    socket.emit('ping', Buffer.from('4'))
    await clock.advance(0)
    socket.bufferedAmount = 0
    socket.emit('ping', Buffer.from('5'))
    await clock.advance(0)
    expect(socket.pongs).toEqual(['3', '5'])
    socket.emit('ping', Buffer.from('6'))
    socket.readyState = 2
    await clock.advance(0)
    expect(socket.pongs).toHaveLength(2)
  })

  it('are sent to a silent client, which is disconnected without an answer', async () => {
    const { greeted, clock } = await scene({ silence: 3000 })
    const [silent, answering] = [await greeted('a'), await greeted('b')]
    answering.ping = () => void answering.emit('pong')
    await clock.advance(1000)
    expect(silent.pings).toBe(1)
    await clock.advance(1999)
    expect(silent.closed).toBeUndefined()
    await clock.advance(1)
    expect([silent.closed?.[0], answering.closed]).toEqual([CLOSE.silent, undefined])
    expect(silent.closed?.[1]).toContain('3000 ms')
  })

  it('do not disconnect clients for a stall of the server, in which it read nothing', async () => {
    const { greeted, clock } = await scene({ silence: 3000 })
    const [silent, answering] = [await greeted('a'), await greeted('b')]
    answering.ping = () => void answering.emit('pong')
    clock.stall(10_000)
    await clock.advance(0)
    expect([silent.pings, silent.closed, answering.closed]).toEqual([1, undefined, undefined])
    await clock.advance(1000)
    expect([silent.closed?.[0], answering.closed]).toEqual([CLOSE.silent, undefined])
  })

  it('do not disconnect a client whose answer has arrived, but was not read yet', async () => {
    const { greeted, clock } = await scene({ silence: 3000 })
    const socket = await greeted('c')
    await clock.advance(2000)
    const { defer } = clock
    // The event loop reads what has arrived before it runs what was deferred.
    clock.defer = (run) => {
      socket.emit('pong')
      defer.call(clock, run)
    }
    await clock.advance(1000)
    expect(socket.closed).toBeUndefined()
  })

  it('do not disconnect a client that is not listened to because its calls take long', async () => {
    const gate = new Gate()
    const { greeted, clock } = await scene(
      { silence: 3000, inFlight: 1 },
      { renew: renewAfter(gate) },
    )
    const socket = await greeted('c')
    socket.frame([1, 'renew', []], [2, 'renew', []])
    await clock.advance(9000)
    expect(socket.closed).toBeUndefined()
    gate.open()
    await clock.advance(0)
    // Nothing could be received while it was not read.
    await clock.advance(2000)
    expect([socket.heard.length, socket.closed]).toEqual([2, undefined])
    await clock.advance(2000)
    expect(socket.closed?.[0]).toBe(CLOSE.silent)
  })

  it('are not sent to a client that sent something recently', async () => {
    const { greeted, clock } = await scene({ silence: 3000 })
    const socket = await greeted('c')
    await clock.advance(999)
    socket.emit('pong')
    await clock.advance(1)
    expect(socket.pings).toBe(0)
    await clock.advance(1000)
    expect(socket.pings).toBe(1)
  })

  it('disconnect a client that reads everything, but sends nothing', async () => {
    const { greeted, clock, inner } = await scene({ silence: 3000 })
    const socket = await greeted('c')
    socket.frame([1, 'watch', { prefix: '' }])
    for (const key of ['a', 'b', 'c']) {
      await clock.advance(1000)
      await lease(inner, [key])
      await clock.advance(0)
      socket.drained()
    }
    expect(socket.heard.length).toBeGreaterThan(1)
    expect(socket.closed?.[0]).toBe(CLOSE.silent)
  })

  it('disconnect a client that has never sent anything', async () => {
    const { connect, clock } = await scene({ silence: 3000, greeting: 60_000 })
    const socket = connect()
    await clock.advance(3000)
    expect(socket.closed?.[0]).toBe(CLOSE.silent)
  })
})
