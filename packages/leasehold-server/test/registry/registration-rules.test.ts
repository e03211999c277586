import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Leasehold, type Lookup } from 'leasehold'
import { memoryStore } from 'leasehold/memory'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createServer, type LeaseServer } from '../../src/index.ts'
import { runLeasehold } from '../setup/run-leasehold.ts'
import { Place, type ServerProcess } from '../setup/server-process.ts'

describe('leasehold serve', () => {
  const place = new Place()
  let server: ServerProcess
  let leasehold: Leasehold
  beforeAll(async () => {
    server = await place.server('memory:')
    leasehold = await Leasehold.open(server.url)
  })
  afterAll(async () => {
    await leasehold?.close()
    await place.clean()
  })

  const register = (check: string, ...more: string[]) => {
    const args = ['register', 'web', '--server', server.url, '--check-http', check, ...more]
    return runLeasehold([...args, '--', process.execPath, '-e', ''])
  }
  const post = async (check: string, base = server.url) => {
    const response = await fetch(`${base}/v1/services/web`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ address: '10.1.2.3:80', check: { http: check } }),
    })
    return { status: response.status, problem: (await response.json()) as Record<string, string> }
  }

  it.each(['10.1.2.3', '172.16.0.1', '192.168.1.1', '[fd12::1]'])(
    'registers instances in a private network with a health check: %s',
    async (host) => {
      const check = `http://${host}:8080/health`
      expect(await register(check)).toMatchObject({ code: 0, stderr: '' })
      expect(await post(check)).toMatchObject({ status: 201 })
      const made = await leasehold.registry.register('web', { check: { http: check } })
      await made.release()
    },
  )

  it.each([
    ['http://127.0.0.1:8080/', /loopback addresses .*--checks loopback/],
    ['http://[::1]:8080/', /loopback addresses .*--checks loopback/],
    ['http://localhost:8080/', /no address that checks may go to/],
    ['http://169.254.169.254/latest', /metadata addresses are never allowed/],
    ['http://[fd00:ec2::254]/latest', /metadata addresses are never allowed/],
    ['http://100.100.100.200/latest', /metadata addresses are never allowed/],
    ['http://169.254.1.1/', /link-local addresses are never allowed/],
    ['http://10.1.2.3:22/', /port 22 .* use one of 80, 443, 1024 to 65535/],
  ])('refuses to register an instance with a check of %s, and says why', async (check, why) => {
    const made = leasehold.registry.register('web', { check: { http: check } })
    await expect(made).rejects.toThrowError(why)
    const { status, problem } = await post(check)
    expect(problem['detail']).toMatch(why)
    expect([400, 403]).toContain(status)
    const ran = await register(check)
    expect(ran).toMatchObject({ code: 125, stderr: expect.stringMatching(why) })
    const found = await leasehold.registry.find('web', { status: 'any' })
    expect(found.filter(({ address }) => address === undefined)).toEqual([])
  })

  it('refuses every check over the network with --checks off, and none with external', async () => {
    const off = await place.server('memory:', ['--checks', 'off'])
    const { status, problem } = await post('http://10.1.2.3/health', off.url)
    expect(status).toBe(403)
    expect(problem['detail']).toMatch(/runs no health checks.*--checks private/)
    await using client = await Leasehold.open(off.url)
    await client.registry.register('web', { check: { ttl: '30s' } })
    const external = await place.server('memory:', ['--checks', 'external'])
    expect(await post('http://127.0.0.1:8080/', external.url)).toMatchObject({ status: 201 })
  })

  it('refuses private addresses with --checks public, and names the setting', async () => {
    const open = await place.server('memory:', ['--checks', 'public'])
    const { status, problem } = await post('http://10.1.2.3/health', open.url)
    expect(status).toBe(403)
    expect(problem['detail']).toMatch(/private addresses .*start the server with --checks private/)
  })
})

describe('a server with rules for health checks', () => {
  const store = memoryStore()
  let addresses: readonly string[] | Error = ['10.1.2.3']
  let lookups = 0
  let server: LeaseServer
  let leasehold: Leasehold
  const lookup: Lookup = async () => {
    lookups++
    if (addresses instanceof Error) throw addresses
    return addresses
  }
  beforeAll(async () => {
    const probe = { lookup, everyMin: 50 }
    server = await createServer({ store, port: 0, checks: { allow: { loopback: true }, ...probe } })
    leasehold = await Leasehold.open(server.url)
  })
  afterAll(async () => {
    await leasehold?.close()
    await server?.close()
    await store.close()
  })
  const registered = (host: string, service = 'web') =>
    leasehold.registry.register(service, { check: { http: `http://${host}:8080/` } })

  it('refuses a name by what it resolves to, like a name that is unknown', async () => {
    const messages: string[] = []
    const unknown = Object.assign(new Error('unknown'), { code: 'ENOTFOUND' })
    for (const found of [['169.254.169.254'], ['10.1.2.3', 'fd00:ec2::254'], unknown]) {
      addresses = found
      const error = await registered('metadata.example').catch((reason: Error) => reason)
      expect(error).toMatchObject({ code: 'forbidden' })
      messages.push((error as Error).message.replace(/"services.*?"/, ''))
    }
    expect(new Set(messages).size).toBe(1)
    expect(messages[0]).toMatch(/no address that checks may go to/)
  })

  it('accepts a name while the name service is down', async () => {
    addresses = Object.assign(new Error('try again'), { code: 'EAI_AGAIN' })
    await (await registered('later.example')).release()
  })

  it('refuses an update that adds a forbidden check', async () => {
    addresses = ['10.1.2.3']
    const made = await registered('good.example')
    const { key, lease, token } = made
    const { claims } = await store.read({ key })
    const value = claims[0]!.value!.replace('good.example:8080', '10.1.2.3:22')
    const { store: remote } = await opened()
    const changed = remote.update({ lease: lease!, key, token: token!, value })
    await expect(changed).rejects.toMatchObject({ code: 'forbidden' })
    await made.release()
  })

  it('resolves no name when an instance only reports', async () => {
    addresses = ['10.1.2.3']
    const made = await registered('good.example', 'reports')
    lookups = 0
    await made.report('passing')
    expect(lookups).toBeLessThanOrEqual(1)
    await made.release()
  })

  it('checks the address of each connection: a name that changes later gains nothing', async () => {
    let visits = 0
    const service = createHttpServer((_request, response) => {
      visits++
      response.end()
    })
    await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
    const { port } = service.address() as AddressInfo
    addresses = ['127.0.0.1']
    const check = { http: `http://rebinding.example:${port}/`, every: 100, timeout: 100, down: 1 }
    const made = await leasehold.registry.register('rebinding', { check })
    await expect.poll(() => visits, { timeout: 20_000 }).toBeGreaterThan(0)
    addresses = ['169.254.169.254']
    const note = async () =>
      (await leasehold.registry.find('rebinding', { status: 'critical' }))[0]?.note
    await expect.poll(note, { timeout: 20_000 }).toMatch(/no address that checks may go to/)
    await made.release()
    service.close()
  })

  it('follows no redirect to an address that checks may not reach', async () => {
    const asked: string[] = []
    const service = createHttpServer((request, response) => {
      asked.push(request.url!)
      response.writeHead(302, { location: '/elsewhere' }).end()
    })
    await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
    const { port } = service.address() as AddressInfo
    const check = { http: `http://127.0.0.1:${port}/`, every: 100, timeout: 100, down: 1 }
    const made = await leasehold.registry.register('redirect', { check })
    const note = async () =>
      (await leasehold.registry.find('redirect', { status: 'critical' }))[0]?.note
    await expect.poll(note, { timeout: 20_000 }).toBe('HTTP 302: redirects are not followed')
    expect(new Set(asked)).toEqual(new Set(['/']))
    await made.release()
    service.close()
  })

  it('never checks its own port', async () => {
    const { port } = new URL(server.url)
    const made = leasehold.registry.register('web', { check: { tcp: `tcp://127.0.0.1:${port}` } })
    await expect(made).rejects.toThrowError(/the server's own/)
  })

  async function opened() {
    const { remoteStore } = await import('leasehold/remote')
    const remote = await remoteStore(server.url)
    return { store: remote }
  }
})
