import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttp, type RequestListener } from 'node:http'
import { createServer as createHttps } from 'node:https'
import { type AddressInfo, createServer as createTcp, type Server, type Socket } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import * as grpc from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { networkProbe, networkRefusal } from '../../../../src/probes/index.ts'
import {
  type CheckPolicy,
  checkedPolicy,
  type Lookup,
  type ProbeSettings,
  targetOf,
} from '../../../../src/recipes/index.ts'

/** Everything here is real: servers on loopback ports and connections to them. */
const opened: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of opened.splice(0)) await close()
})

async function listening(server: Server): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  opened.push(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}

const serving = (listener: RequestListener) => listening(createHttp(listener))

const HERE: CheckPolicy = { loopback: true }

function probe(
  url: string,
  {
    policy = HERE,
    timeout = 2000,
    ...rest
  }: { policy?: CheckPolicy; timeout?: number } & Partial<Omit<ProbeSettings, 'policy'>> = {},
) {
  const probe = networkProbe({ policy: checkedPolicy(policy), ...rest })
  return probe(targetOf('check', url), AbortSignal.timeout(timeout))
}

describe('a check by http', () => {
  it.each([
    [200, 'passing', ''],
    [204, 'passing', ''],
    [429, 'warning', 'HTTP 429: it has too much to do'],
    [404, 'critical', 'HTTP 404'],
    [503, 'critical', 'HTTP 503'],
  ])('takes %i for %s', async (code, status, note) => {
    const port = await serving((_, response) => response.writeHead(code).end('secret'))
    expect(await probe(`http://127.0.0.1:${port}/health`)).toEqual({ status, note })
  })

  it('requests the path with the given host name, and keeps no connection', async () => {
    const received: unknown[] = []
    const port = await serving((request, response) => {
      received.push(request.method, request.url, request.headers.host, request.headers.connection)
      response.end()
    })
    const lookup: Lookup = async () => ['127.0.0.1']
    await probe(`http://embed.example:${port}/health?deep=1`, { lookup })
    expect(received).toEqual(['GET', '/health?deep=1', `embed.example:${port}`, 'close'])
  })

  it('follows no redirect', async () => {
    let visits = 0
    const secret = await serving((_, response) => {
      visits++
      response.end()
    })
    for (const code of [301, 302, 303, 307, 308]) {
      const location = `http://127.0.0.1:${secret}/`
      const port = await serving((_, response) => response.writeHead(code, { location }).end())
      const result = await probe(`http://127.0.0.1:${port}/`)
      expect(result).toEqual({
        status: 'critical',
        note: `HTTP ${code}: redirects are not followed`,
      })
    }
    expect(visits).toBe(0)
  })

  it('passes on nothing of the response', async () => {
    const port = await serving((_, response) => {
      response.statusMessage = 'password'
      response.writeHead(500, { 'x-secret': 'password' }).end('password')
    })
    const result = await probe(`http://127.0.0.1:${port}/`)
    expect(JSON.stringify(result)).not.toContain('password')
  })

  it('does not wait for a body that never ends', async () => {
    const port = await serving((_, response) => {
      response.writeHead(200)
      response.write('x'.repeat(100_000))
    })
    expect((await probe(`http://127.0.0.1:${port}/`)).status).toBe('passing')
  })

  it('takes no more than a few kilobytes of headers', async () => {
    const server = createTcp((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n')
      const more = () => {
        while (!socket.destroyed && socket.write(`x-filler: ${'y'.repeat(1000)}\r\n`));
      }
      socket.on('drain', more)
      socket.once('data', more)
    })
    const port = await listening(server)
    const result = await probe(`http://127.0.0.1:${port}/`)
    expect(result).toEqual({ status: 'critical', note: 'HPE_HEADER_OVERFLOW' })
  })

  it.each([
    ['says nothing', (_: Socket) => {}],
    ['drips', (socket: Socket) => void setInterval(() => socket.write('H'), 20).unref()],
  ])('fails after its timeout if the server %s', async (_, behave) => {
    const port = await listening(createTcp(behave))
    const start = performance.now()
    const result = await probe(`http://127.0.0.1:${port}/`, { timeout: 200 })
    expect(result.status).toBe('critical')
    expect(performance.now() - start).toBeLessThan(1500)
  })

  it('reports a closed port, a reset connection and an unknown host as critical', async () => {
    const port = await listening(createTcp((socket) => socket.resetAndDestroy()))
    expect(await probe(`http://127.0.0.1:${port}/`)).toEqual({
      status: 'critical',
      note: 'the connection was reset',
    })
    await opened.pop()!()
    expect(await probe(`http://127.0.0.1:${port}/`)).toEqual({
      status: 'critical',
      note: 'the connection was refused',
    })
    const lookup: Lookup = () => Promise.reject(Object.assign(new Error(), { code: 'ENOTFOUND' }))
    const result = await probe(`http://nowhere.example:${port}/`, { lookup })
    expect(result.note).toMatch(/^its host has no address that checks may go to/)
  })

  it('uses no proxy of the environment', async () => {
    let asked = 0
    const proxy = await serving((_, response) => {
      asked++
      response.end()
    })
    const names = ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'ALL_PROXY', 'NODE_USE_ENV_PROXY']
    for (const name of names) process.env[name] = `http://127.0.0.1:${proxy}`
    try {
      const port = await serving((_, response) => response.writeHead(503).end())
      const result = await probe(`http://127.0.0.1:${port}/`)
      expect([result.note, asked]).toEqual(['HTTP 503', 0])
    } finally {
      for (const name of names) delete process.env[name]
    }
  })
})

describe('the target of a check', () => {
  /** A server that must not be reached. */
  async function forbidden() {
    let visits = 0
    const port = await serving((_, response) => {
      visits++
      response.end()
    })
    return { port, visits: () => visits }
  }

  it('is not loopback, unless that is allowed', async () => {
    const { port, visits } = await forbidden()
    for (const host of ['127.0.0.1', '[::1]', '[::ffff:127.0.0.1]', 'localhost']) {
      const result = await probe(`http://${host}:${port}/`, { policy: {} })
      // A check that is not allowed says nothing about the instance.
      expect(result.status).toBe(host === 'localhost' ? 'critical' : 'warning')
      expect(result.note).toMatch(/loopback addresses are not allowed here|no address that checks/)
    }
    expect(visits()).toBe(0)
    expect((await probe(`http://127.0.0.1:${port}/`)).status).toBe('passing')
  })

  it("is no address of the checker's own machine, unless that is allowed", async () => {
    const own = Object.values(networkInterfaces())
      .flatMap((each = []) => each)
      .find(({ family, internal }) => family === 'IPv4' && !internal)
    const host = own?.address ?? '127.0.0.1'
    const visited: string[] = []
    const server = createHttp((request, response) => {
      visited.push(request.url!)
      response.end()
    })
    await new Promise<void>((resolve) => server.listen(0, host, resolve))
    const { port } = server.address() as AddressInfo
    expect((await probe(`http://${host}:${port}/`, { policy: {} })).note).toMatch(
      /not allowed here/,
    )
    const lookup: Lookup = async () => [host]
    const byName = await probe(`http://own.example:${port}/`, { policy: {}, lookup })
    expect(byName.note).toMatch(/no address that checks/)
    expect(visited).toEqual([])
    expect((await probe(`http://${host}:${port}/`)).status).toBe('passing')
    server.close()
  })

  it('is not a port or a scheme that is not allowed', async () => {
    const { port, visits } = await forbidden()
    const url = `http://127.0.0.1:${port}/`
    expect((await probe(url, { policy: { ...HERE, ports: [1] } })).note).toMatch(/port/)
    expect((await probe(url, { policy: { ...HERE, schemes: ['tcp'] } })).note).toMatch(/by http/)
    expect(visits()).toBe(0)
  })

  it.each(['169.254.169.254', 'fe80::1', '::ffff:169.254.169.254', '0.0.0.0', '::', '127.0.0.1'])(
    'is not %s behind an allowed name',
    async (address) => {
      const lookup: Lookup = async () => [address]
      const result = await probe('http://innocent.example:8080/', { policy: {}, lookup })
      expect(result.status).toBe('critical')
      const unknown: Lookup = async () => {
        throw Object.assign(new Error('no such host'), { code: 'ENOTFOUND' })
      }
      // A registration must not reveal what a name resolves to, or that it resolves.
      expect(result).toEqual(
        await probe('http://innocent.example:8080/', { policy: {}, lookup: unknown }),
      )
      expect(result.note).not.toContain(address)
    },
  )

  it('is not a forbidden address next to an allowed one', async () => {
    const { port, visits } = await forbidden()
    const lookup: Lookup = async () => ['127.0.0.1', '169.254.169.254']
    const result = await probe(`http://mixed.example:${port}/`, { lookup })
    expect(result.note).toMatch(/no address that checks may go to/)
    expect(visits()).toBe(0)
  })

  it('is refused in advance for the same reasons, but not because the name service is down', async () => {
    const refusal = (url: string, found: Lookup = async () => ['10.0.0.1'], resolves = true) => {
      const settings = { policy: checkedPolicy({ private: true }), lookup: found }
      return networkRefusal(targetOf('check', url), settings, resolves)
    }
    const bad: Lookup = async () => ['169.254.169.254']
    const down: Lookup = async () => {
      throw Object.assign(new Error('try again'), { code: 'EAI_AGAIN' })
    }
    expect(await refusal('http://a.example/')).toBeUndefined()
    expect(await refusal('http://a.example:22/')).toMatch(/port 22/)
    expect(await refusal('http://127.0.0.1/')).toMatch(/loopback/)
    expect(await refusal('http://127.0.0.1/', bad, false)).toMatch(/loopback/)
    expect(await refusal('http://a.example/', bad)).toMatch(/no address that checks may go to/)
    expect(await refusal('http://a.example/', bad, false)).toBeUndefined()
    expect(await refusal('http://a.example:22/', bad, false)).toMatch(/port 22/)
    expect(await refusal('http://a.example/', down)).toBeUndefined()
  })

  it('is the address that was checked: a name is resolved once', async () => {
    const good = await serving((_, response) => response.writeHead(429).end())
    const answers = [['127.0.0.1'], ['169.254.169.254'], ['127.0.0.2']]
    let asked = 0
    const lookup: Lookup = async () => answers[asked++]!
    const result = await probe(`http://rebinding.example:${good}/`, { lookup })
    expect(result.status).toBe('warning')
    expect(asked).toBe(1)
  })

  it('is not resolved again by the system: only the address is used', async () => {
    // The system resolves localhost to this machine; the given lookup does not.
    const { port, visits } = await forbidden()
    const lookup: Lookup = async () => ['127.0.0.2']
    const result = await probe(`http://localhost:${port}/`, { lookup, timeout: 500 })
    expect(result.status).toBe('critical')
    expect(visits()).toBe(0)
  })
})

describe('a check by tcp', () => {
  it('passes if a connection can be opened, and sends nothing', async () => {
    let received = ''
    const server = createTcp((socket) => socket.on('data', (data) => (received += data)))
    const port = await listening(server)
    expect(await probe(`tcp://127.0.0.1:${port}`)).toEqual({ status: 'passing', note: '' })
    await opened.pop()!()
    expect((await probe(`tcp://127.0.0.1:${port}`)).status).toBe('critical')
    expect(received).toBe('')
  })
})

describe('with certificates', () => {
  let folder: string
  let key: string
  let cert: string

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'leasehold-probes-'))
    const files = ['-keyout', join(folder, 'key.pem'), '-out', join(folder, 'cert.pem')]
    const name = ['-subj', '/CN=embed.example', '-addext', 'subjectAltName=DNS:embed.example']
    const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
    execFileSync('openssl', ['req', '-x509', '-days', '2', ...kind, ...name, ...files], {
      stdio: 'ignore',
    })
    key = readFileSync(join(folder, 'key.pem'), 'utf8')
    cert = readFileSync(join(folder, 'cert.pem'), 'utf8')
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  const lookup: Lookup = async () => ['127.0.0.1']

  it('a check by https trusts the given CA, for the right name', async () => {
    const port = await listening(createHttps({ key, cert }, (_, response) => void response.end()))
    const url = `https://embed.example:${port}/`
    expect(await probe(url, { lookup, ca: cert })).toEqual({ status: 'passing', note: '' })
    expect((await probe(url, { lookup })).note).toBe('DEPTH_ZERO_SELF_SIGNED_CERT')
    const other = `https://other.example:${port}/`
    expect((await probe(other, { lookup, ca: [cert] })).note).toBe('ERR_TLS_CERT_ALTNAME_INVALID')
  })

  it('a check by grpcs does too', async () => {
    const port = await healthServer(
      'SERVING',
      grpc.ServerCredentials.createSsl(null, [
        { private_key: Buffer.from(key), cert_chain: Buffer.from(cert) },
      ]),
    )
    const url = `grpcs://embed.example:${port}`
    expect(await probe(url, { lookup, ca: cert })).toEqual({ status: 'passing', note: '' })
    expect((await probe(url, { lookup })).status).toBe('critical')
  })
})

const PROTO = `syntax = "proto3";
package grpc.health.v1;
message HealthCheckRequest { string service = 1; }
message HealthCheckResponse {
  enum ServingStatus { UNKNOWN = 0; SERVING = 1; NOT_SERVING = 2; SERVICE_UNKNOWN = 3; }
  ServingStatus status = 1;
}
service Health { rpc Check(HealthCheckRequest) returns (HealthCheckResponse); }
`

/** The server of the gRPC project itself, with messages read and written by its own library. */
async function healthServer(
  status: string,
  credentials = grpc.ServerCredentials.createInsecure(),
): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-proto-'))
  writeFileSync(join(folder, 'health.proto'), PROTO)
  const { 'grpc.health.v1.Health': service } = loadSync(join(folder, 'health.proto'), {
    enums: String,
  })
  rmSync(folder, { recursive: true })
  const server = new grpc.Server()
  server.addService(service as grpc.ServiceDefinition, {
    Check: ((call, answer) => {
      const name = (call.request as { service?: string }).service ?? ''
      if (name === 'unknown.Service') answer({ code: grpc.status.NOT_FOUND, details: 'secret' })
      else answer(null, { status: name === 'a.Sick' ? 'NOT_SERVING' : status })
    }) as grpc.handleUnaryCall<object, object>,
  })
  opened.push(async () => server.forceShutdown())
  return new Promise((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', credentials, (error, port) =>
      error ? reject(error) : resolve(port),
    )
  })
}

describe('a check by grpc', () => {
  it.each([
    ['SERVING', 'passing', ''],
    ['NOT_SERVING', 'critical', 'gRPC health: NOT_SERVING'],
    ['UNKNOWN', 'critical', 'gRPC health: UNKNOWN'],
    ['SERVICE_UNKNOWN', 'critical', 'gRPC health: SERVICE_UNKNOWN'],
  ])('takes %s for %s', async (serving, status, note) => {
    const port = await healthServer(serving)
    expect(await probe(`grpc://127.0.0.1:${port}`)).toEqual({ status, note })
  })

  it('asks for one service of several, also one with a long name', async () => {
    const port = await healthServer('SERVING')
    const at = (service: string) => probe(`grpc://127.0.0.1:${port}/${service}`)
    expect((await at('a.Sick')).note).toBe('gRPC health: NOT_SERVING')
    expect((await at(`a.${'x'.repeat(300)}`)).status).toBe('passing')
    expect(await at('unknown.Service')).toEqual({ status: 'critical', note: 'gRPC status 5' })
  })

  it('reports a server without that service, and a server without gRPC, as critical', async () => {
    const server = new grpc.Server()
    const port = await new Promise<number>((resolve) => {
      const credentials = grpc.ServerCredentials.createInsecure()
      server.bindAsync('127.0.0.1:0', credentials, (_, bound) => resolve(bound))
    })
    opened.push(async () => server.forceShutdown())
    expect((await probe(`grpc://127.0.0.1:${port}`)).note).toBe('gRPC status 12')
    const web = await serving((_, response) => response.end('hello'))
    expect((await probe(`grpc://127.0.0.1:${web}`)).status).toBe('critical')
    const silent = await listening(createTcp(() => {}))
    const late = await probe(`grpc://127.0.0.1:${silent}`, { timeout: 200 })
    expect(late.status).toBe('critical')
  })

  it('respects the policy', async () => {
    const port = await healthServer('SERVING')
    const result = await probe(`grpc://127.0.0.1:${port}`, { policy: {} })
    expect(result.note).toMatch(/loopback/)
  })
})
