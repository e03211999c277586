import { type GrantRequest, LeaseholdError, type LeaseStore, type Query } from 'leasehold/port'
import { CLOSE, DONE, PROTOCOL } from 'leasehold/remote'
import { describe, expect, it } from 'vitest'
import { lease } from '../access/scene.ts'
import { Gate } from '../setup/changed-store.ts'
import { grant, KEY, leaseIn, scene, type TestSocket } from './scene.ts'

describe('a connection', () => {
  it('is welcomed with facts about the server, and answers requests in the same turn', async () => {
    const { connect, clock, server } = await scene()
    const socket = connect()
    socket.frame(['hello', PROTOCOL, { client: 'c' }], [1, 'read', KEY])
    expect(socket.heard[0]).toMatchObject(['welcome', PROTOCOL, { stream: { silence: 15_000 } }])
    await clock.advance(0)
    expect(socket.heard[1]).toMatchObject([1, DONE, { count: 0 }])
    expect(server.stats).toMatchObject({ connections: 1, connected: 1, requests: 1, malformed: 0 })
    expect(socket.isPaused).toBe(false)
    socket.end()
    expect(server.stats).toMatchObject({ connections: 0, connected: 1 })
  })

  it('of another version is refused in a message, and closed', async () => {
    const { connect, clock } = await scene()
    const socket = connect()
    socket.frame(['hello', 99, { client: 'c' }], [1, 'read', KEY])
    await clock.advance(0)
    expect(socket.heard).toMatchObject([['refused', 'unsupported', expect.any(String)]])
    expect(socket.closed?.[0]).toBe(CLOSE.version)
    expect(socket.terminated).toBe(0)
    await clock.advance(999)
    expect(socket.terminated).toBe(0)
    await clock.advance(1)
    expect(socket.terminated).toBe(1)
  })

  it('without a hello in time is closed, and one with it is not', async () => {
    const { connect, greeted, clock } = await scene({ greeting: 300 })
    const [silent, gone, polite] = [connect(), connect(), await greeted('c')]
    gone.end()
    await clock.advance(299)
    expect(silent.closed).toBeUndefined()
    await clock.advance(1)
    expect([silent.closed?.[0], polite.closed, gone.closed]).toEqual([
      ...[CLOSE.malformed, undefined, undefined],
    ])
  })

  it.each([
    ['a binary frame', (socket: TestSocket) => socket.emit('message', Buffer.from('[]'), true)],
    ['no JSON', (socket: TestSocket) => socket.text('x')],
    ['no message', (socket: TestSocket) => socket.text('[["x"]]')],
    ['a request without an id', (socket: TestSocket) => socket.frame(['x', 'read', KEY])],
    ['an id that is not an integer', (socket: TestSocket) => socket.frame([1.5, 'read', KEY])],
    ['no operation', (socket: TestSocket) => socket.frame([1, 'fly'])],
    ['a tie on a stream without tied leases', (socket: TestSocket) => socket.frame([1, 'tie', []])],
  ])('that sends %s is closed, counted, and not read any more', async (_what, send) => {
    const { greeted, server, clock, errors } = await scene()
    const socket = await greeted('c')
    send(socket)
    socket.frame([7, 'read', KEY])
    await clock.advance(0)
    expect(socket.closed?.[0]).toBe(CLOSE.malformed)
    expect([socket.isPaused, server.stats.malformed, socket.heard]).toEqual([true, 1, []])
    expect(errors).toEqual([])
    // Its end is reported once, and later input is ignored.
    socket.emit('message', Buffer.alloc(0), true)
    void server.close()
    await clock.advance(1000)
    expect([socket.closed?.[0], server.stats.malformed]).toEqual([CLOSE.malformed, 1])
    expect(socket.terminated).toBe(1)
  })

  it('logs why it was closed, and the error of the socket', async () => {
    const { greeted, as, logged, server } = await scene()
    const socket = await greeted('c', undefined, await as('ann'))
    socket.emit('error', new Error('reset'))
    socket.text('x')
    expect(logged).toMatchObject([
      { err: { message: 'reset' } },
      { principal: 'ann', code: CLOSE.malformed, reason: expect.stringContaining('JSON') },
    ])
    expect([socket.closed?.[0], server.stats.malformed]).toEqual([CLOSE.malformed, 1])
  })

  it('is closed when its token is revoked, with the reason', async () => {
    const { greeted, as, access, clock } = await scene()
    const [ann, bob] = [await as('ann'), await as('bob')]
    const [socket, other] = [await greeted('c', undefined, ann), await greeted('d', undefined, bob)]
    await access.tokens.revoke('ann', 'ops')
    await clock.advance(0)
    expect(socket.closed).toEqual([CLOSE.unauthenticated, expect.stringContaining('revoked')])
    expect(other.closed).toBeUndefined()
  })

  it('on which the server fails is closed, and logged; or terminated', async () => {
    const { greeted, clock, errors } = await scene()
    for (const isBroken of [false, true]) {
      const socket = await greeted('c')
      socket.send = () => {
        socket.fault = isBroken ? new Error('cannot close') : undefined
        throw new Error('broken pipe')
      }
      socket.frame([1, 'read', KEY])
      await clock.advance(0)
      expect(socket.closed?.[0]).toBe(isBroken ? undefined : CLOSE.failed)
      expect(socket.terminated).toBe(isBroken ? 1 : 0)
      expect(errors.splice(0)).toMatchObject([
        { principal: 'everybody', err: { message: 'broken pipe' } },
      ])
      socket.end()
    }
  })

  it('on which the server fails between two turns is closed, and others are served on', async () => {
    const { greeted, clock, errors, server } = await scene()
    const [socket, other] = [await greeted('c'), await greeted('d')]
    socket.resume = () => {
      throw new Error('cannot resume')
    }
    for (const each of [socket, other]) {
      each.frame(...Array.from({ length: 100 }, (_, at) => [at, 'renew', []]))
    }
    await clock.advance(0)
    expect([socket.closed?.[0], other.closed]).toEqual([CLOSE.failed, undefined])
    expect([other.heard.length, server.stats.requests]).toEqual([100, 200])
    expect(errors).toMatchObject([{ err: { message: 'cannot resume' } }])
  })

  it('that cannot even be closed is terminated a second later', async () => {
    const large = {
      async read(this: LeaseStore, query: Query) {
        const reading = await this.read(query)
        return 'key' in query ? { ...reading, more: 'x'.repeat(512 * 1024) } : reading
      },
    } as Partial<LeaseStore>
    const { greeted, clock, errors } = await scene({ buffered: 1000 }, large)
    const socket = await greeted('c')
    socket.close = () => {
      throw new Error('cannot close')
    }
    socket.bufferedAmount = 1001
    socket.frame([1, 'read', KEY])
    await clock.advance(999)
    expect(errors).toMatchObject([{ err: { message: 'cannot close' } }])
    expect(socket.terminated).toBe(0)
    await clock.advance(1)
    expect(socket.terminated).toBe(1)
  })

  it('whose store throws gets an error answer', async () => {
    const odd = new Error('odd')
    const { greeted, clock } = await scene(
      {},
      {
        renew: () => {
          throw odd
        },
        update: () => Promise.reject(new LeaseholdError('closed', 'x')),
      },
    )
    const socket = await greeted('c')
    socket.frame([1, 'renew', ['a']], [2, 'update', {}])
    await clock.advance(0)
    expect(socket.heard).toMatchObject([
      [1, 0, 'unknown-outcome', expect.stringContaining('odd')],
      [2, 0, 'closed', 'x'],
    ])
  })

  it('of a client that connects again takes the place of the older one', async () => {
    const { greeted, clock, inner, alive } = await scene()
    const first = await greeted('c', 1000)
    const { lease: id } = await lease(inner)
    first.frame([1, 'tie', [id]])
    await clock.advance(0)
    expect(first.heard).toEqual([[1, DONE]])
    const other = await greeted('d', 0)
    const second = await greeted('c', 1000)
    expect([first.closed?.[0], other.closed]).toEqual([CLOSE.superseded, undefined])
    first.end()
    await clock.advance(5000)
    expect(await alive(id)).toBe(true)
    second.end()
    await clock.advance(999)
    expect(await alive(id)).toBe(true)
    await clock.advance(1)
    expect(await alive(id)).toBe(false)
  })
})

describe('a tied connection', () => {
  it('ends its leases at once after a goodbye, and in any case within the maximum', async () => {
    const { greeted, clock, alive } = await scene({ linger: 50 })
    for (const [tied, code, wait] of [
      [0, 1006, 0],
      [5000, CLOSE.done, 0],
      [5000, 1006, 50],
    ] as const) {
      const socket = await greeted(`c${tied}${code}`, tied)
      socket.frame(grant(1))
      await clock.advance(0)
      const id = leaseIn(socket)
      socket.end(code)
      if (wait > 0) {
        await clock.advance(wait - 1)
        expect(await alive(id)).toBe(true)
      }
      await clock.advance(wait > 0 ? 1 : 0)
      expect(await alive(id)).toBe(false)
    }
  })

  it('ties many leases, a number in each turn, and is answered when all are tied', async () => {
    const { greeted, clock, inner, alive } = await scene()
    const socket = await greeted('c', 0)
    const ids: string[] = []
    for (let at = 0; at < 513; at++) ids.push((await lease(inner)).lease)
    socket.frame([1, 'tie', ids], [2, 'tie', ['']], [3, 'tie', 5], [4, 'read', KEY])
    await clock.advance(0)
    expect(socket.heard.map(([id, status]) => [id, status])).toEqual([
      ...[
        [1, DONE],
        [2, 0],
        [3, 0],
        [4, DONE],
      ],
    ])
    socket.end()
    await clock.advance(0)
    expect(await Promise.all([alive(ids[0]!), alive(ids[256]!), alive(ids[512]!)])).toEqual([
      ...[false, false, false],
    ])
  })

  it('does not tie leases of others', async () => {
    const { greeted, as, clock, inner, alive } = await scene()
    const { lease: id } = await lease(inner)
    const socket = await greeted('c', 0, await as('ann'))
    socket.frame([1, 'tie', [id]])
    await clock.advance(0)
    expect(socket.heard).toEqual([[1, DONE]])
    socket.end()
    await clock.advance(0)
    expect(await alive(id)).toBe(true)
  })

  it('ends leases that were granted while it left, at the end of its linger, if it has not returned', async () => {
    const gate = new Gate()
    const { greeted, clock, inner, alive } = await scene(
      {},
      {
        async grant(this: LeaseStore, request: GrantRequest) {
          await gate.opened
          return this.grant(request)
        },
      },
    )
    const socket = await greeted('c', 1000)
    socket.frame(grant(1, { request: 'r' }))
    socket.end()
    gate.open()
    await clock.advance(999)
    const [found] = (await inner.read({ leases: true })).leases
    expect(await alive(found!.id)).toBe(true)
    await clock.advance(1)
    expect(await alive(found!.id)).toBe(false)
  })

  it.each([
    [undefined, 'everybody'],
    [0, 'everybody'],
    [0, 'a token'],
  ])('claims and releases with its lease (tied: %s, by %s)', async (tied, who) => {
    const { greeted, as, clock, inner } = await scene()
    const socket = await greeted('c', tied, who === 'a token' ? await as('ann') : undefined)
    socket.frame(grant(1))
    await clock.advance(0)
    const id = leaseIn(socket)
    socket.frame([2, 'claim', id, ['k'], 0])
    await clock.advance(0)
    const [claim] = (await inner.read(KEY)).claims
    expect(claim).toMatchObject({ lease: id.split('~')[0], heldSince: expect.any(Number) })
    socket.frame([3, 'claim', id, ['k'], 1])
    await clock.advance(0)
    socket.frame([4, 'release', id, claim!.token, ['k']])
    await clock.advance(0)
    expect(socket.heard.map(([request, status]) => [request, status])).toEqual([
      [1, DONE],
      [2, DONE],
      [3, DONE],
      [4, DONE],
    ])
    expect((await inner.read(KEY)).count).toBe(0)
  })

  it('that returns without a tie leaves its leases alone', async () => {
    const { greeted, clock, alive } = await scene()
    const first = await greeted('c', 1000)
    first.frame(grant(1))
    await clock.advance(0)
    const id = leaseIn(first)
    first.end()
    const second = await greeted('c')
    second.end()
    await clock.advance(10_000)
    expect(await alive(id)).toBe(true)
  })
})

describe('a request of a client that has gone', () => {
  it('is undone, if it was pending and nobody can repeat it', async () => {
    const { inner, clock, alive, greeted } = await scene()
    const socket = await greeted('c')
    socket.frame(grant(1), grant(2, { request: 'r' }))
    socket.end()
    await clock.advance(0)
    const { leases } = await inner.read({ leases: true })
    expect(leases).toHaveLength(1)
    expect(await alive(leases[0]!.id)).toBe(true)
    expect(socket.heard).toEqual([])
  })

  it('is not begun any more', async () => {
    const { greeted, clock, server } = await scene({ inFlight: 1 })
    const socket = await greeted('c')
    socket.frame([1, 'read', KEY], [2, 'read', KEY], [3, 'read', KEY])
    socket.readyState = 2
    await clock.advance(0)
    expect(server.stats.requests).toBe(1)
    socket.frame([4, 'read', KEY])
    await clock.advance(0)
    expect(server.stats.requests).toBe(1)
  })
})
