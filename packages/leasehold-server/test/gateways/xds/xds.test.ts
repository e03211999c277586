import { Client, type ClientDuplexStream, credentials, Metadata } from '@grpc/grpc-js'
import { describe, expect, it } from 'vitest'
import { afterFile } from '../../../../leasehold/test/setup/after-file.ts'
import { everybody } from '../../../src/access/identity/principal.ts'
import { parseRight } from '../../../src/access/index.ts'
import { Answers } from '../../../src/gateways/xds/answers.ts'
import { encode } from '../../../src/gateways/xds/messages.ts'
import { ASSIGNMENT, CLUSTER, LISTENER } from '../../../src/gateways/xds/resources.ts'
import { Subscriber } from '../../../src/gateways/xds/subscriber.ts'
import { gatewayScene } from '../gateway-scene.ts'
import { viewScene } from '../view-scene.ts'

const XDS = { xds: { host: '127.0.0.1', port: 0 } }
const ADS = '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources'
const consumer = { principal: everybody(), zone: '' }
const count = ({ endpoints }: { endpoints: readonly { lb_endpoints: readonly object[] }[] }) =>
  endpoints.reduce((sum, { lb_endpoints }) => sum + lb_endpoints.length, 0)

describe('an assignment', () => {
  it('keeps what the brake holds back, and lets it go after two minutes', async () => {
    const { clock, open, register, doomed } = await viewScene()
    const view = await open()
    for (let at = 0; at < 20; at++) await register('web', `i-${at}`, { address: `10.0.0.${at}:80` })
    const { die } = await doomed('web', 20)
    await clock.advance(10)
    const answers = new Answers(view)
    const shown = () => count(answers.assignment(consumer, 'web'))
    expect(shown()).toBe(40)
    die()
    await clock.advance(10_000)
    expect(shown()).toBe(34)
    await clock.advance(121_000)
    expect(shown()).toBe(20)
    await view.close()
  })

  it('has only what clients accept: IP addresses with ports, each once, weighted', async () => {
    const { clock, open, register } = await viewScene()
    const view = await open()
    await register('web', 'a', { address: '10.0.0.1:80', weight: 0.5, zone: 'eu-1' })
    await register('web', 'b', { address: '10.0.0.1:80' })
    await register('web', 'c', { address: '[fd00::1]:80', weight: 2, zone: 'eu-1' })
    await register('web', 'd', { address: 'web.example:80' })
    await register('web', 'e', { address: '10.0.0.2' })
    await register('web', 'f', { address: '10.0.0.3:80', weight: 0 })
    await (await register('web', 'g', { address: '10.0.0.4:80' })).report('critical')
    await clock.advance(10)
    const answers = new Answers(view)
    const { endpoints } = answers.assignment({ ...consumer, zone: 'eu-1' }, 'web')
    expect(
      endpoints.map(({ locality, load_balancing_weight, priority }) => ({
        ...{ ...locality, weight: load_balancing_weight.value, priority },
      })),
    ).toEqual([
      { zone: 'eu-1', sub_zone: 'weight-250', weight: 250, priority: 0 },
      { zone: 'eu-1', sub_zone: 'weight-1000', weight: 1000, priority: 0 },
    ])
    await view.close()
  })
})

describe('a subscriber', () => {
  const scene = async () => {
    const { clock, open, register } = await viewScene()
    const view = await open()
    const answers = new Answers(view)
    const written: Buffer[] = []
    let takesMore = true
    const subscriber = new Subscriber(everybody(), answers, (bytes) => {
      written.push(bytes)
      return takesMore
    })
    view.onChange((changed) => subscriber.onChange(changed))
    const ask = (type_url: string, ...resource_names: string[]) =>
      subscriber.onRequest({ type_url, resource_names })
    const fill = (isFull: boolean) => {
      takesMore = !isFull
      if (!isFull) subscriber.onDrain()
    }
    return { clock, view, register, written, ask, fill, subscriber }
  }

  it('answers a request once, not its acknowledgement, and then each change', async () => {
    const { clock, view, register, written, ask } = await scene()
    ask(LISTENER, 'web')
    ask(LISTENER, 'web')
    ask(ASSIGNMENT, 'web', 'mail')
    ask(ASSIGNMENT, 'mail', 'web')
    expect(written).toHaveLength(2)
    await register('web', 'a', { address: '10.0.0.1:80' })
    await clock.advance(10)
    expect(written).toHaveLength(3)
    await register('other', 'a', { address: '10.0.0.1:80' })
    await clock.advance(10)
    expect(written).toHaveLength(3)
    ask('type.googleapis.com/unknown', 'web')
    expect(written).toHaveLength(3)
    await view.close()
  })

  it('gets one response for all that changed while its connection was full', async () => {
    const { clock, view, register, written, ask, fill } = await scene()
    fill(true)
    ask(ASSIGNMENT, 'web')
    for (const id of ['a', 'b', 'c']) {
      await register('web', id, { address: `10.0.0.${id.charCodeAt(0)}:80` })
      await clock.advance(10)
    }
    expect(written).toHaveLength(1)
    fill(false)
    expect(written).toHaveLength(2)
    expect(written[1]!.toString('latin1')).toContain('10.0.0.99')
    await view.close()
  })

  it('gets all clusters if it names none, and again only if a service comes or goes', async () => {
    const { clock, view, register, written, ask } = await scene()
    const web = await register('web', 'a', { address: '10.0.0.1:80' })
    await clock.advance(10)
    ask(CLUSTER)
    ask(CLUSTER)
    expect(written).toHaveLength(1)
    await register('web', 'b', { address: '10.0.0.2:80' })
    await clock.advance(10)
    expect(written).toHaveLength(1)
    await register('mail', 'a', { address: '10.0.0.3:25' })
    await clock.advance(10)
    expect(written).toHaveLength(2)
    expect(web.token).toBeGreaterThan(0)
    await view.close()
  })

  it('is refused if it asks for too much', async () => {
    const { view, ask, subscriber } = await scene()
    const inZone = (zone: string) =>
      subscriber.onRequest({ type_url: CLUSTER, resource_names: [], node: { locality: { zone } } })
    expect(() => inZone('x'.repeat(257))).toThrow(/257 characters.*256/)
    const error_detail = { message: 'x'.repeat(10_000) }
    const refusal = subscriber.onRequest({ type_url: CLUSTER, resource_names: [], error_detail })
    expect(refusal).toHaveLength(500)
    const names = Array.from({ length: 1001 }, (_, at) => `s-${at}`)
    expect(() => ask(ASSIGNMENT, ...names)).toThrow(/1001 resources .* are too many.*1000/)
    const long = Array.from({ length: 101 }, (_, at) => `${at}`.padEnd(1000, 'x'))
    expect(() => ask(ASSIGNMENT, ...long)).toThrow(/101000 characters are too many.*100000/)
    await view.close()
  })

  it('cannot fill the memory with answers by asking for ever new names', async () => {
    const { open } = await viewScene()
    const view = await open()
    const answers = new Answers(view)
    for (let at = 0; at < 1000; at++) {
      answers.response(consumer, CLUSTER, [`${at}`.padEnd(50_000, 'x')])
    }
    expect(answers.keptBytes).toBeGreaterThan(1024 * 1024)
    expect(answers.keptBytes).toBeLessThan(33 * 1024 * 1024)
    await view.close()
  })
})

/** A stream of ADS, of which the test sends and reads bytes. */
function adsStream(port: number, accessToken?: string) {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure())
  const metadata = new Metadata()
  if (accessToken !== undefined) metadata.set('authorization', `Bearer ${accessToken}`)
  const bytes = (value: Buffer) => value
  const stream: ClientDuplexStream<Buffer, Buffer> = client.makeBidiStreamRequest(
    ADS,
    bytes,
    bytes,
    metadata,
  )
  const responses: Buffer[] = []
  stream.on('data', (response) => responses.push(response))
  const ended = new Promise<number>((resolve) => {
    stream.on('error', ({ code }: Error & { code?: number }) => resolve(code!))
    stream.on('end', () => resolve(0))
  })
  afterFile(() => client.close())
  const ask = (...resource_names: string[]) =>
    stream.write(encode('DiscoveryRequest', { type_url: ASSIGNMENT, resource_names }))
  const text = () => Buffer.concat(responses).toString('latin1')
  return { stream, ended, ask, text, responses }
}

describe('ADS', () => {
  it('shows what an access token may read, and ends with the token', async () => {
    const { server, registry, createToken } = await gatewayScene(XDS)
    const port = server.xdsPort!
    await registry.register('web', { id: 'w1', address: '10.0.0.1:80' })
    await registry.register('web', { id: 'x1', address: '10.0.0.2:80' })
    await createToken('root', 'all:')
    const token = await createToken('reader', 'read:services/web/w')
    const stream = adsStream(port, token)
    stream.ask('web')
    await expect.poll(stream.text).toContain('10.0.0.1')
    expect(stream.text()).not.toContain('10.0.0.2')
    await registry.register('web', { id: 'w2', address: '10.0.0.3:80' })
    await expect.poll(stream.text).toContain('10.0.0.3')
    // 16: unauthenticated, 7: permission denied.
    expect(await adsStream(port).ended).toBe(16)
    expect(await adsStream(port, 'lh_no').ended).toBe(16)
    expect(await adsStream(port, await createToken('locker', 'all:locks/')).ended).toBe(7)
    await server.access.tokens.revoke('reader', 'test')
    expect(await stream.ended).toBe(16)
  })

  it('shows what the rights cover as soon as they change, and ends if they cover nothing', async () => {
    const { server, registry, createToken } = await gatewayScene(XDS)
    await registry.register('web', { id: 'w1', address: '10.0.0.1:80' })
    await registry.register('web', { id: 'x1', address: '10.0.0.2:80' })
    await createToken('root', 'all:')
    const token = await createToken('reader', 'read:services/web/w')
    const stream = adsStream(server.xdsPort!, token)
    stream.ask('web')
    await expect.poll(stream.text).toContain('10.0.0.1')
    const { tokens } = server.access
    const principal = tokens.byToken(token)
    const change = (right: string) => {
      stream.responses.length = 0
      principal.rights = [parseRight(right)]
      tokens.changed(principal)
    }
    change('read:services/web/x')
    await expect.poll(stream.text).toContain('10.0.0.2')
    expect(stream.text()).not.toContain('10.0.0.1')
    change('all:locks/')
    expect(await stream.ended).toBe(7)
    expect(stream.text()).toBe('')
  })

  it('ends the stream of a hostile client, and serves the others', async () => {
    const { server, registry } = await gatewayScene(XDS)
    const port = server.xdsPort!
    const good = adsStream(port)
    good.ask('web')
    await expect.poll(() => good.responses.length).toBe(1)
    const malformed = adsStream(port)
    malformed.stream.write(Buffer.from([0xff, 0xff, 0xff]))
    const large = adsStream(port)
    large.stream.write(Buffer.alloc(300 * 1024))
    const greedy = adsStream(port)
    greedy.ask(...Array.from({ length: 1001 }, (_, at) => `s-${at}`))
    // 13: internal, as gRPC says for what it cannot decode. 8: resource exhausted.
    expect(await Promise.all([malformed.ended, large.ended, greedy.ended])).toEqual([13, 8, 8])
    await registry.register('web', { id: 'w1', address: '10.0.0.1:80' })
    await expect.poll(good.text).toContain('10.0.0.1')
  })

  it('stops reading the requests of a consumer that does not read its answers', async () => {
    const { server } = await gatewayScene(XDS)
    const { stream, responses } = adsStream(server.xdsPort!)
    const good = adsStream(server.xdsPort!)
    stream.pause()
    const REQUESTS = 300
    let sent = 0
    for (let at = 0; at < REQUESTS; at++) {
      const resource_names = Array.from({ length: 9 }, (_, name) => `${at}-${name}`.padEnd(10_000))
      const request = encode('DiscoveryRequest', { type_url: ASSIGNMENT, resource_names })
      stream.write(request, () => sent++)
    }
    // It is stuck if others get many answers meanwhile.
    for (let turn = 0, stuckAt = -1, stuckFor = 0; stuckFor < 50; turn++) {
      good.ask(`other-${turn}`)
      await expect.poll(() => good.responses.length, { interval: 1 }).toBe(turn + 1)
      stuckFor = sent === stuckAt ? stuckFor + 1 : 0
      stuckAt = sent
    }
    expect(sent).toBeLessThan(REQUESTS / 2)
    stream.resume()
    await expect.poll(() => responses.length, { timeout: 20_000 }).toBe(REQUESTS)
  }, 40_000)

  it('is off by default, and a port that is in use stops the start', async () => {
    const { server } = await gatewayScene({})
    expect(server.xdsPort).toBeUndefined()
    const { server: first } = await gatewayScene(XDS)
    const xds = { host: '127.0.0.1', port: first.xdsPort! }
    await expect(gatewayScene({ xds })).rejects.toThrow(/xDS cannot listen on .*--xds/)
  })
})

describe('EDS over REST', () => {
  it('has the same resources, for what the access token may read', async () => {
    const { registry, url, createToken } = await gatewayScene(XDS)
    await registry.register('web', { id: 'w1', address: '10.0.0.1:80', zone: 'eu-1' })
    const ask = async (body: unknown, accessToken?: string) => {
      const authorization = accessToken && { authorization: `Bearer ${accessToken}` }
      const answer = await fetch(`${url}/v3/discovery:endpoints`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...authorization },
        body: JSON.stringify(body),
      })
      return { status: answer.status, body: (await answer.json()) as never }
    }
    const endpoints = async (accessToken?: string) =>
      ((await ask({ resource_names: ['web'] }, accessToken)).body['resources'] as unknown[])[0]
    await expect
      .poll(() => endpoints())
      .toEqual({
        '@type': ASSIGNMENT,
        cluster_name: 'web',
        endpoints: [
          {
            locality: { zone: 'eu-1', sub_zone: 'weight-1000' },
            lb_endpoints: [
              {
                endpoint: { address: { socket_address: { address: '10.0.0.1', port_value: 80 } } },
                load_balancing_weight: 1000,
              },
            ],
            load_balancing_weight: 1000,
            priority: 0,
          },
        ],
      })
    for (const bad of [{ resource_names: 'web' }, { resource_names: [1] }]) {
      expect((await ask(bad)).status).toBe(400)
    }
    await createToken('root', 'all:')
    const other = await createToken('other', 'read:services/mail/')
    expect(await endpoints(other)).toMatchObject({ cluster_name: 'web', endpoints: [] })
    expect((await ask({ resource_names: ['web'] })).status).toBe(401)
  })
})
