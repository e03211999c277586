import { afterAll, expect, it } from 'vitest'
import { Leasehold } from '../../../src/index.ts'
import { describeWith, Engine, REDIS } from '../../engines/index.ts'
import { Served } from '../served.ts'

describeWith(REDIS, 'a client of three servers on one engine', () => {
  const servers: Served[] = []
  let engine: Engine | undefined
  afterAll(async () => {
    for (const server of servers) await server.end()
    await engine?.stop()
  })

  it('goes from each server that is killed to the next, keeps its leases, and returns to the first', async () => {
    engine = await Engine.start(REDIS)
    const address = `redis://127.0.0.1:${engine.port}`
    const serve = async (port?: number) => {
      const server = await Served.on(address, {}, port)
      servers.push(server)
      return server
    }
    const [a, b, c] = [await serve(), await serve(), await serve()]
    const urls = [a.url, b.url, c.url]
    const keeper = await Leasehold.open(urls, { holder: 'keeper', timeout: '20s' })
    const rival = await Leasehold.open(urls.join(','), { holder: 'rival', timeout: '20s' })
    const lost: unknown[] = []
    for (const client of [keeper, rival]) client.on('lost', (event) => lost.push(event))
    expect(keeper.guarantees.notes.at(-1)).toContain(a.url)

    // Tied, so that a server which took the return for the end would revoke it.
    const lock = await keeper.lock('job', { ttl: '30s', tied: true })
    const waiting = rival.lock('job', { ttl: '30s' })
    const { token } = lock
    const works = async (key: string) => {
      await lock.renew()
      await keeper.withLock(key, () => {})
      expect((await rival.tryLock('job')).conflict?.token).toBe(token)
    }
    await works('before')
    await a.end('SIGKILL')
    await works('on b')
    await b.end('SIGKILL')
    await works('on c')
    const again = await serve(a.port)
    // It returns while the other servers work.
    const connections = async () =>
      /^leasehold_connections (\d+)/m.exec(await (await fetch(`${again.url}/metrics`)).text())?.[1]
    await expect.poll(connections, { timeout: 60_000 }).toBe('2')
    await c.end('SIGKILL')
    await works('on a again')

    expect(lost).toEqual([])
    expect(lock.token).toBe(token)
    await lock.release()
    expect((await waiting).token).toBeGreaterThan(token)
    await keeper.close()
    await rival.close()
    await again.end()
  }, 120_000)

  it('leaves a frozen server in time for a lease of a few seconds, also if the next is frozen', async () => {
    engine ??= await Engine.start(REDIS)
    const address = `redis://127.0.0.1:${engine.port}`
    const three = [await Served.on(address), await Served.on(address), await Served.on(address)]
    servers.push(...three)
    const [a, b] = three
    await using keeper = await Leasehold.open(three.map(({ url }) => url))
    const lost: unknown[] = []
    keeper.on('lost', (event) => lost.push(event))
    await using lock = await keeper.lock('short', { ttl: '8s' })
    const { token } = lock
    a!.signal('SIGSTOP')
    b!.signal('SIGSTOP')
    // Longer than the ttl: it is kept by renewals through the third server.
    const began = performance.now()
    while (performance.now() - began < 9000) {
      await keeper.withLock('other', { timeout: '20s' }, () => {})
      await lock.renew({ timeout: '20s' })
    }
    expect(lost).toEqual([])
    expect(lock.token).toBe(token)
  }, 120_000)

  it('fails to open with the reason of the last one, and names all, if none is there', async () => {
    const nobody = Leasehold.open(['http://127.0.0.1:9', 'http://127.0.0.1:11'], { timeout: 500 })
    await expect(nobody).rejects.toThrow(
      /no lease server was reached at http:\/\/127.0.0.1:9, http:\/\/127.0.0.1:11 within 500ms \(127.0.0.1:(9|11): .*ECONNREFUSED/,
    )
  })
})

it('refuses an array of other stores', async () => {
  await expect(Leasehold.open([])).rejects.toThrow('no URL is given')
  await expect(Leasehold.open(['http://a:7420', 'redis://b'])).rejects.toThrow(
    '"redis://b" is not the URL of a server',
  )
})
