import { readFileSync, writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import type { BrakeOptions } from 'leasehold'
import { memoryStore } from 'leasehold/memory'
import { afterAll, describe, expect, it } from 'vitest'
import { describeWith, Engine, haproxy } from '../../../../leasehold/test/engines/index.ts'
import { createServer } from '../../../src/index.ts'
import { exampleFile } from '../gateway-scene.ts'
import { addressOf, ask, Backends } from './backends.ts'

/** The configuration of examples/discovery, with the addresses of this test. */
const EXAMPLE = exampleFile('haproxy.cfg')

/** Only for whether it is on this machine. */
const HAPROXY = haproxy(() => EXAMPLE)
const HOUR = 3_600_000

async function start(
  count: number,
  nameserver: (port: number) => string,
  brake: BrakeOptions = {},
) {
  const store = memoryStore()
  const backends = await new Backends().start()
  const leases: string[] = []
  const register = async (at: number, ttl = HOUR) => {
    const value = JSON.stringify({ address: `${addressOf(at)}:${backends.port}` })
    const key = `services/web/i-${at}`
    const granted = await store.grant({ holder: 'test', ttl, claims: [{ key, value }] })
    if (granted.outcome === 'busy') throw new Error('busy')
    leases[at] = granted.lease
    return granted.lease
  }
  for (let at = 0; at < count; at++) await register(at)
  const gateways = { dns: { host: '127.0.0.1', port: 0 }, brake }
  let server = await createServer({ store, port: 0, gateways })
  const dnsPort = server.dnsPort!
  afterAll(async () => {
    await server.close()
    await store.close()
  })
  let proxyPort = 0
  const engine = await Engine.start(
    haproxy((folder, port) => {
      const file = join(folder, 'haproxy.cfg')
      proxyPort = port
      const text = readFileSync(EXAMPLE, 'utf8')
        .replace('tcp@127.0.0.1:8600', nameserver(dnsPort))
        .replace('127.0.0.1:8080', `127.0.0.1:${port}`)
        .replace('/tmp/leasehold-haproxy.sock', join(folder, 'stats.sock'))
      writeFileSync(file, text)
      return file
    }),
  )
  afterAll(() => engine.stop())
  const restartServer = async (whileDown: () => Promise<void>) => {
    await server.close()
    await whileDown()
    server = await createServer({
      store,
      port: 0,
      gateways: { ...gateways, dns: { ...gateways.dns, port: dnsPort } },
    })
  }
  /** The addresses of the servers that HAProxy uses now. */
  const used = async (): Promise<string[]> => {
    const lines = (
      await command(join(engine.folder, 'stats.sock'), 'show servers state web')
    ).split('\n')
    const rows = lines.map((line) => line.split(' ')).filter(([, name]) => name === 'web')
    // The address, whether it is up (2), and flags: 32 means that its name does not resolve.
    const isUsed = ([, , , , , state, flags]: string[]) => state === '2' && !(Number(flags) & 32)
    return rows.filter(isUsed).map((row) => row[4]!)
  }
  const request = () => ask(`http://127.0.0.1:${proxyPort}/`)
  return { store, backends, leases, register, used, request, restartServer }
}

function command(socketFile: string, line: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = createConnection(socketFile, () => socket.write(`${line}\n`))
    socket.on('data', (chunk) => (text += chunk))
    socket.on('end', () => resolve(text))
    socket.on('error', reject)
  })
}

const WAIT = { timeout: 20_000, interval: 50 }
const UDP = (port: number) => `127.0.0.1:${port}`
const TCP = (port: number) => `tcp@127.0.0.1:${port}`

describeWith(HAPROXY, 'HAProxy', () => {
  describe.each([
    [40, 'UDP', UDP],
    [250, 'TCP', TCP],
  ])('with %i backends by %s', (count, _, nameserver) => {
    it('stops using a killed one within 1 s of the end of its lease', async () => {
      const { store, backends, used, request, register } = await start(count - 1, nameserver)
      await expect.poll(async () => (await used()).length, WAIT).toBe(count - 1)
      const bodies = new Set<string>()
      for (let at = 0; at < 2 * count; at += 50) {
        const answers = await Promise.all(Array.from({ length: 50 }, request))
        for (const { body } of answers) bodies.add(body)
      }
      expect(bodies.size).toBe(count - 1)
      // One more, whose process dies: its lease runs out.
      const killed = addressOf(count - 1)
      await register(count - 1, 3000)
      await expect.poll(async () => (await used()).length, WAIT).toBe(count)
      backends.dead.add(killed)
      const ended = new Promise<number>((resolve) => {
        store.watch({ prefix: `services/web/i-${count - 1}` }, ({ type }) => {
          if (type === 'events') resolve(performance.now())
        })
      })
      const endedAt = await ended
      while ((await used()).length === count) await request()
      const gone = performance.now() - endedAt
      expect(gone).toBeLessThan(1000)
      expect(await used()).not.toContain(killed)
      backends.refused.length = 0
      await Promise.all(Array.from({ length: 100 }, request))
      expect(backends.refused).toEqual([])
    }, 60_000)

    it('loses no request when some leave gracefully', async () => {
      const { store, backends, used, request, leases } = await start(count, nameserver)
      await expect.poll(async () => (await used()).length, WAIT).toBe(count)
      let isOver = false
      const statuses = new Map<number, number>()
      const client = async () => {
        while (!isOver) {
          const { status } = await request()
          statuses.set(status, (statuses.get(status) ?? 0) + 1)
        }
      }
      const clients = [client(), client(), client(), client()]
      for (const at of [3, 7, 20]) {
        // First it deregisters, then it finishes what still arrives, then it stops.
        await store.revoke({ target: { lease: leases[at]! } })
        await expect.poll(used, WAIT).not.toContain(addressOf(at))
        backends.dead.add(addressOf(at))
      }
      const before = statuses.get(200)!
      await expect.poll(() => statuses.get(200), WAIT).toBeGreaterThan(before + 200)
      isOver = true
      await Promise.all(clients)
      expect([...statuses.keys()]).toEqual([200])
      expect(backends.refused).toEqual([])
    }, 60_000)
  })

  it('uses 250 backends by TCP, and keeps them while the server is down and when it is back', async () => {
    const { used, restartServer, request, leases, store } = await start(250, TCP)
    await expect.poll(async () => (await used()).length, WAIT).toBe(250)
    await restartServer(async () => {
      // It asks twice a second.
      await new Promise((resolve) => setTimeout(resolve, 2000))
      expect(await used()).toHaveLength(250)
      expect((await request()).status).toBe(200)
    })
    expect(await used()).toHaveLength(250)
    // It asks again: a change arrives, and nothing else is lost.
    await store.revoke({ target: { lease: leases[0]! } })
    await expect.poll(async () => (await used()).length, WAIT).toBe(249)
  }, 60_000)

  it('keeps most backends when half of them vanish at once, until the brake lets go', async () => {
    const HOLD = 8000
    const { used, register, store, backends, request } = await start(20, TCP, { hold: HOLD })
    const lost: number[] = []
    store.watch({ prefix: 'services/web/' }, (notice) => {
      if (notice.type !== 'events') return
      for (const { type } of notice.events) if (type === 'removed') lost.push(performance.now())
    })
    const dying = await Promise.all(Array.from({ length: 20 }, (_, at) => register(20 + at, 4000)))
    const heartbeat = setInterval(() => store.renew(dying).catch(() => {}), 500)
    await expect.poll(async () => (await used()).length, WAIT).toBe(40)
    clearInterval(heartbeat)
    // 15 % of 40 leave. The brake holds back the other 14.
    await expect.poll(async () => (await used()).length, WAIT).toBe(34)
    for (;;) {
      const count = (await used()).length
      if (performance.now() > lost[0]! + HOLD) break
      expect(count).toBe(34)
    }
    await expect.poll(async () => (await used()).length, WAIT).toBe(20)
    expect(lost).toHaveLength(20)
    for (let at = 20; at < 40; at++) backends.dead.add(addressOf(at))
    const answers = await Promise.all(Array.from({ length: 100 }, request))
    expect(answers.every(({ status }) => status === 200)).toBe(true)
    expect(backends.refused).toEqual([])
  }, 60_000)
})
