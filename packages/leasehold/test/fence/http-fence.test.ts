import { once } from 'node:events'
import { createServer, request as httpRequest, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import fastify from 'fastify'
import { afterEach, describe, expect, it } from 'vitest'
import {
  expressFence,
  type Fence,
  type FencedRequest,
  fastifyFence,
  type HttpFenceOptions,
  leaseToken,
  memoryFence,
  nodeFence,
} from '../../src/fence/index.ts'

type Options = Pick<HttpFenceOptions<FencedRequest>, 'required' | 'onFailure' | 'resource'>
type Serve = (fence: Fence, options: Options, handled: string[]) => Promise<Running>

interface Running {
  readonly url: string
  stop(): Promise<unknown>
}

const note = (request: FencedRequest) => `${request.method} ${leaseToken(request)}`

async function listen(server: Server): Promise<Running> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const stop = async () => {
    server.closeAllConnections()
    server.close()
  }
  return { url: `http://127.0.0.1:${port}`, stop }
}

const onNode: Serve = (fence, options, handled) =>
  listen(
    createServer(
      nodeFence(
        fence,
        (request, response) => {
          handled.push(note(request))
          response.end('done')
        },
        options,
      ),
    ),
  )

const onExpress: Serve = (fence, options, handled) => {
  const app = express()
  // In a router, `url` of a request contains only the rest of the path.
  const router = express.Router()
  router.use(expressFence(fence, options))
  router.use((request, response) => {
    handled.push(note(request))
    response.end('done')
  })
  app.use('/api', router)
  return listen(createServer(app))
}

const onFastify: Serve = async (fence, options, handled) => {
  const app = fastify()
  app.addHook('preHandler', fastifyFence(fence, options))
  app.all('/api/*', async (request) => {
    handled.push(note(request))
    return 'done'
  })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  return { url, stop: () => app.close() }
}

describe.each<[string, Serve]>([
  ['node:http', onNode],
  ['Express', onExpress],
  ['Fastify', onFastify],
])('a fence before %s', (_name, serve) => {
  const running: Running[] = []
  const handled: string[] = []

  afterEach(async () => {
    handled.length = 0
    await Promise.all(running.splice(0).map((each) => each.stop()))
  })

  async function start(options: Options = {}, fence: Fence = memoryFence()) {
    const server = await serve(fence, options, handled)
    running.push(server)
    return async (method: string, path: string, token?: string) => {
      const headers: Record<string, string> = token === undefined ? {} : { 'lease-token': token }
      const response = await fetch(server.url + path, { method, headers })
      const type = response.headers.get('content-type') ?? ''
      const isProblem = type.startsWith('application/problem+json')
      return {
        status: response.status,
        body: isProblem ? ((await response.json()) as unknown) : await response.text(),
      }
    }
  }

  it('passes the newest token and answers a stale one with 412', async () => {
    const send = await start()
    expect(await send('PUT', '/api/report?a=1', '9')).toEqual({ status: 200, body: 'done' })
    expect(await send('PUT', '/api/report?a=2', '10')).toEqual({ status: 200, body: 'done' })
    expect(await send('PUT', '/api/report?a=3', '9')).toEqual({
      status: 412,
      body: {
        title: 'The lease token is stale',
        status: 412,
        detail: expect.stringContaining('token 9 for "/api/report" is stale: it has seen token 10'),
        resource: '/api/report',
        token: 9,
        highest: 10,
      },
    })
    expect((await send('PUT', '/api/other', '9')).status).toBe(200)
    expect((await send('PUT', '/api/report', '10')).status).toBe(200)
    expect(handled).toEqual(['PUT 9', 'PUT 10', 'PUT 9', 'PUT 10'])
  })

  it.each(['', 'ten', '-1', '0', '1.5', '1e3', '0x10', '010', '5, 6', '9007199254740992'])(
    'answers the token %j with 412',
    async (token) => {
      const send = await start()
      const { status, body } = await send('PUT', '/api/report', token)
      expect(status).toBe(412)
      expect(body).toMatchObject({ title: 'Not a lease token', resource: '/api/report' })
      expect(body).toMatchObject({ detail: expect.stringContaining(JSON.stringify(token)) })
      expect(handled).toEqual([])
    },
  )

  it('answers with 428 if a required token is missing', async () => {
    const send = await start()
    for (const method of ['PUT', 'POST', 'PATCH', 'DELETE']) {
      const { status, body } = await send(method, '/api/report')
      expect(status).toBe(428)
      expect(body).toMatchObject({ title: 'A lease token is required', status: 428 })
    }
    expect((await send('GET', '/api/report')).status).toBe(200)
    await send('PUT', '/api/report', '10')
    // A token in the request is checked, even for reads.
    expect((await send('GET', '/api/report', '9')).status).toBe(412)
    expect(handled).toEqual(['GET undefined', 'PUT 10'])
  })

  it('requires a token if configured', async () => {
    const never = await start({ required: false })
    expect((await never('PUT', '/api/report')).status).toBe(200)
    const always = await start({ required: true })
    expect((await always('GET', '/api/report')).status).toBe(428)
    const some = await start({ required: (request) => request.method === 'DELETE' })
    expect((await some('PUT', '/api/report')).status).toBe(200)
    expect((await some('DELETE', '/api/report')).status).toBe(428)
  })

  it('gets the resource from a function', async () => {
    const send = await start({ resource: (request) => (request.method === 'PUT' ? 'a' : 'b') })
    await send('PUT', '/api/one', '10')
    expect(await send('PUT', '/api/two', '9')).toMatchObject({ body: { resource: 'a' } })
    expect((await send('POST', '/api/two', '9')).status).toBe(200)
  })

  it('answers an invalid resource with 400', async () => {
    const send = await start()
    const { status, body } = await send('PUT', `/api/${'x'.repeat(600)}`, '9')
    expect(status).toBe(400)
    expect(body).toMatchObject({ detail: expect.stringContaining('maximum is 512') })
  })

  it('passes no request if the fence fails, and reports the error', async () => {
    const failures: unknown[] = []
    const broken: Fence = { admit: () => Promise.reject(new Error('no connection to 10.0.0.7')) }
    const send = await start({ onFailure: (error) => failures.push(error) }, broken)
    const { status, body } = await send('PUT', '/api/report', '9')
    expect(status).toBe(503)
    // The client does not see the internal error.
    expect(JSON.stringify(body)).not.toContain('10.0.0.7')
    expect(failures).toEqual([new Error('no connection to 10.0.0.7')])
    expect(handled).toEqual([])
  })

  it('passes no decreasing token under load', async () => {
    const send = await start()
    const tokens = Array.from({ length: 80 }, (_, index) => 1 + ((index * 37) % 80))
    const answers = await Promise.all(tokens.map((token) => send('PUT', '/api/r', String(token))))
    const through = handled.map((each) => Number(each.slice('PUT '.length)))
    expect(through).toEqual([...through].sort((a, b) => a - b))
    expect(through.at(-1)).toBe(80)
    expect(answers.filter(({ status }) => status === 412)).toHaveLength(80 - through.length)
  })
})

describe('a request that has the header twice', () => {
  it('is malformed, because it is ambiguous', async () => {
    const handled: string[] = []
    const server = await onNode(memoryFence(), {}, handled)
    const headers = { 'Lease-Token': ['5', '6'] }
    const request = httpRequest(`${server.url}/api/report`, { method: 'PUT', headers }).end()
    const [response] = await once(request, 'response')
    expect(response.statusCode).toBe(412)
    response.resume()
    await server.stop()
  })
})

describe('the token of a request', () => {
  it.each([
    ['1', 1],
    // Tokens of a store in Redis have sixteen digits.
    ['1800000000000001', 1_800_000_000_000_001],
    ['9007199254740991', Number.MAX_SAFE_INTEGER],
    ['9007199254740992', undefined],
    ['10000000000000000', undefined],
    ['01', undefined],
    ['0', undefined],
    ['1.0', undefined],
    ['', undefined],
  ])('%j is %s', (text, token) => {
    expect(leaseToken({ method: 'PUT', url: '/', headers: { 'lease-token': text } })).toBe(token)
  })
})
