import { once } from 'node:events'
import { memoryStore } from 'leasehold/memory'
import type { Granted, LeaseStore } from 'leasehold/port'
import { CLOSE, remoteStore } from 'leasehold/remote'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { controlFrame, OPCODE, textFrame } from '../../../leasehold/src/stores/remote/frames.ts'
import { parseRight } from '../../src/access/index.ts'
import { createServer, type LeaseServer, type ServerOptions } from '../../src/index.ts'
import { changedStore } from '../setup/changed-store.ts'
import { RawStream, rawSocket } from './raw-stream.ts'

let inner: LeaseStore
let server: LeaseServer

/** A store that acts only when the test opens the gate. */
function gated(store: LeaseStore): { readonly store: LeaseStore; open(): void } {
  let open = () => {}
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  const changed = changedStore(store, {
    grant: async (request) => gate.then(() => store.grant(request)),
    claim: async (request) => gate.then(() => store.claim(request)),
  })
  return { store: changed, open: () => open() }
}

async function start(options: Partial<ServerOptions> = {}): Promise<void> {
  server = await createServer({ store: inner, port: 0, ...options })
}

beforeEach(() => {
  inner = memoryStore()
})

afterEach(async () => {
  await server.close()
  await inner.close()
})

const eventually = (check: () => unknown) => vi.waitFor(check, { timeout: 20_000 })

const token = (name: string) => server.access.tokens.create({ name, rights: [parseRight('all:')] })

async function granted(key?: string): Promise<Granted> {
  const claims = key === undefined ? undefined : [{ key }]
  const answer = await inner.grant({ holder: 'holder', ttl: 600_000, claims })
  if (answer.outcome !== 'granted') throw new Error('not granted')
  return answer
}

describe('the id of a client', () => {
  it('belongs to its principal: another one with the same id is another client', async () => {
    await start()
    const ann = await token('ann')
    const bob = await token('bob')
    const victim = await RawStream.greeted(server.url, 'same', { token: ann, tied: 0 })
    const [, , lease] = await victim.ask(1, 'grant', {
      ...{ holder: 'ann', ttl: 60_000, claims: [{ key: 'k' }] },
    })
    expect(lease).toMatchObject({ outcome: 'granted' })
    const thief = await RawStream.greeted(server.url, 'same', { token: bob, tied: 0 })
    thief.socket.close(1000)
    await thief.closed
    expect(await victim.ask(2, 'read', { key: 'k' })).toMatchObject([2, 1, { count: 1 }])
    const again = await RawStream.greeted(server.url, 'same', { token: ann, tied: 0 })
    expect((await victim.closed)[0]).toBe(CLOSE.superseded)
    expect(await again.ask(1, 'read', { key: 'k' })).toMatchObject([1, 1, { count: 1 }])
    again.socket.terminate()
  })

  it('that returns without a tie leaves its leases alone', async () => {
    await start()
    const first = await RawStream.greeted(server.url, 'one', { tied: 0 })
    await first.ask(1, 'grant', { holder: 'a', ttl: 60_000, claims: [{ key: 'k' }] })
    const second = await RawStream.greeted(server.url, 'one')
    await first.closed
    second.socket.terminate()
    await second.closed
    await eventually(() => expect(server.stats.connections).toBe(0))
    expect((await inner.read({ key: 'k' })).count).toBe(1)
  })
})

describe('a request of a client that has gone', () => {
  it('is not begun any more', async () => {
    const gate = gated(inner)
    await start({ store: gate.store, stream: { inFlight: 10 } })
    const { lease } = await granted('k')
    const stream = await RawStream.greeted(server.url, 'one')
    const before = server.stats.requests
    const claims = Array.from({ length: 2000 }, (_, id) => [id, 'claim', lease, ['k'], 0])
    stream.send(...claims)
    await eventually(() => expect(server.stats.requests - before).toBe(10))
    stream.socket.terminate()
    gate.open()
    await eventually(() => expect(server.stats.connections).toBe(0))
    expect(server.stats.requests - before).toBeLessThan(500)
  })

  it('is undone if it was pending, and nobody can repeat it', async () => {
    const gate = gated(inner)
    await start({ store: gate.store })
    const { lease } = await granted('k')
    const stream = await RawStream.greeted(server.url, 'one')
    const before = server.stats.requests
    stream.send(
      [1, 'claim', lease, ['k'], 0],
      [2, 'claim', lease, ['k'], 0, 'asked again'],
      [3, 'grant', { holder: 'lost', ttl: null, claims: [{ key: 'k' }] }],
    )
    await eventually(() => expect(server.stats.requests - before).toBe(3))
    stream.socket.terminate()
    await eventually(() => expect(server.stats.connections).toBe(0))
    gate.open()
    const left = async () => {
      const { claims } = await inner.read({ key: 'k' })
      expect(claims.map(({ holder }) => holder)).toEqual(['holder', 'holder'])
      expect((await inner.read({ leases: true })).leases).toHaveLength(1)
    }
    await eventually(left)
    const again = await RawStream.greeted(server.url, 'one')
    const request = [2, 'claim', lease, ['k'], 0, 'asked again'] as const
    expect(await again.ask(...request)).toMatchObject([2, 1, { outcome: 'claimed' }])
    await left()
    again.socket.terminate()
  })
})

describe('a client that does not read', () => {
  it('is not answered its pings without end', async () => {
    await start()
    const socket = await rawSocket(server.url)
    socket.write(textFrame('[[1,"watch",{"prefix":""}]]', 1))
    await once(socket, 'data')
    socket.pause()
    // More than the operating system keeps for a connection, and less than the server does.
    const { lease, token: own } = await granted('k')
    const value = 'v'.repeat(64 << 10)
    for (let round = 0; round < 400; round++) {
      await inner.update({ lease, key: 'k', token: own, value })
    }
    const content = Buffer.from('are you there?')
    socket.write(Buffer.concat(Array(500).fill(controlFrame(OPCODE.ping, content, 1))))
    // Each of these takes a tick at least, so all pings have been read after them.
    const other = await remoteStore(server.url)
    for (let round = 0; round < 1000; round++) await other.read({ key: 'none' })
    const heard: Buffer[] = []
    const answered = new Promise<void>((resolve) => {
      socket.on('data', (bytes) => {
        heard.push(bytes)
        if (bytes.includes('[2,1,')) resolve()
      })
    })
    socket.write(textFrame('[[2,"read",{"key":"none"}]]', 1))
    socket.resume()
    await answered
    const pongs = Buffer.concat(heard).toString('latin1').split(String(content)).length - 1
    expect(pongs).toBeLessThan(500)
    await other.close()
    socket.destroy()
  }, 60_000)
})

describe('a quota of bytes', () => {
  it('slows a client down, and others not', async () => {
    await start()
    await token('root')
    const bytesPerSecond = 20_000
    const rights = [parseRight('all:')]
    const slow = await server.access.tokens.create({
      ...{ name: 'slow', rights, quota: { bytesPerSecond } },
    })
    const stream = await RawStream.greeted(server.url, 'one', { token: slow })
    const filler = 'x'.repeat(400)
    const begun = performance.now()
    for (let id = 1; id <= 60; id++) stream.send([id, 'read', { key: filler }])
    await stream.until(([id]) => id === 60)
    expect(performance.now() - begun).toBeGreaterThan(200)
    stream.socket.terminate()
  })
})

describe('a renewal of as many leases as may be', () => {
  it('is split by the client, and renews all of them', async () => {
    await start()
    const text = await token('ann')
    const store = await remoteStore(server.url, { accessToken: text, timeout: 60_000 })
    const leases = await Promise.all(
      Array.from({ length: 20_000 }, async () => {
        const answer = await store.grant({ holder: 'a', ttl: 600_000 })
        if (answer.outcome !== 'granted') throw new Error('not granted')
        return answer.lease
      }),
    )
    const strangers = Array.from(
      { length: 80_000 },
      (_, number) => `999999.${number}~${'s'.repeat(22)}`,
    )
    const { lost, capped } = await store.renew([...leases, ...strangers])
    expect(capped).toEqual([])
    expect(lost).toHaveLength(80_000)
    const own = new Set(leases)
    expect(lost.some(({ lease }) => own.has(lease))).toBe(false)
    await store.close()
  }, 120_000)
})
