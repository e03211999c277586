import { once } from 'node:events'
import { createRequire } from 'node:module'
import { describe, expect, it } from 'vitest'
import { afterFile } from '../../../../leasehold/test/setup/after-file.ts'
import { gatewayScene, massFailure } from '../gateway-scene.ts'

interface EurekaInstance {
  readonly instanceId: string
  readonly app: string
  readonly status: string
  readonly ipAddr: string
  readonly port: { readonly $: number }
}

/** The parts of eureka-js-client that are used here; the package has no types. */
interface EurekaClient {
  start(callback: (error?: Error) => void): void
  stop(callback: (error?: Error) => void): void
  on(event: 'heartbeat' | 'registered' | 'registryUpdated', listener: () => void): void
  getInstancesByAppId(app: string): EurekaInstance[]
  getInstancesByVipAddress(vip: string): EurekaInstance[]
}
const { Eureka } = createRequire(import.meta.url)('eureka-js-client') as {
  readonly Eureka: new (config: object) => EurekaClient
}

const silent = { debug() {}, info() {}, warn() {}, error() {} }
const JSON_ONLY = { accept: 'application/json' }

/** A client of eureka-js-client; `accessToken` goes into a header. */
async function eurekaClient(url: string, app: string, port: number, accessToken?: string) {
  const instance = {
    app,
    instanceId: `${app}-${port}`,
    hostName: 'localhost',
    ipAddr: '127.0.0.1',
    port: { $: port, '@enabled': 'true' },
    vipAddress: `${app}.example`,
    statusPageUrl: `http://127.0.0.1:${port}/info`,
    dataCenterInfo: {
      '@class': 'com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo',
      name: 'MyOwn',
    },
    leaseInfo: { durationInSecs: 3, renewalIntervalInSecs: 1 },
    metadata: { zone: 'eu-1', commit: 'abc' },
  }
  const client = new Eureka({
    instance,
    logger: silent,
    eureka: {
      host: '127.0.0.1',
      port: Number(new URL(url).port),
      heartbeatInterval: 200,
      registryFetchInterval: 200,
      maxRetries: 0,
    },
    requestMiddleware: (request: { headers?: object }, done: (request: object) => void) =>
      done(
        accessToken === undefined
          ? request
          : { ...request, headers: { ...request.headers, authorization: `Bearer ${accessToken}` } },
      ),
  })
  const call = (method: 'start' | 'stop') =>
    new Promise<void>((resolve, reject) =>
      client[method]((error) => (error ? reject(error) : resolve())),
    )
  await call('start')
  let isStopped = false
  const stop = async () => {
    if (isStopped) return
    isStopped = true
    await call('stop')
  }
  afterFile(() => stop().catch(() => {}))
  return { client, stop }
}

const WAIT = { timeout: 20_000, interval: 50 }

describe('eureka-js-client', () => {
  it('registers, is found in the registry and finds what is there, and leaves', async () => {
    const { registry, url } = await gatewayScene({ eureka: true })
    const { client, stop } = await eurekaClient(url, 'orders', 8081)
    const [found] = await registry.find('orders')
    expect(found).toMatchObject({
      id: 'orders-8081',
      address: '127.0.0.1:8081',
      zone: 'eu-1',
      status: 'passing',
      metadata: { commit: 'abc' },
    })
    // It finds what others registered without Eureka.
    await registry.register('Mail', { id: 'm1', address: '10.0.0.8:25' })
    await expect
      .poll(() => client.getInstancesByAppId('MAIL'), WAIT)
      .toEqual([expect.objectContaining({ instanceId: 'm1', ipAddr: '10.0.0.8', status: 'UP' })])
    expect(client.getInstancesByVipAddress('orders.example')).toHaveLength(1)
    await stop()
    expect(await registry.find('orders')).toEqual([])
  }, 30_000)

  it('keeps its lease by heartbeats, and registers again after its lease was ended', async () => {
    const { registry, store, url } = await gatewayScene({ eureka: true })
    const { client } = await eurekaClient(url, 'orders', 8082)
    const [first] = await registry.find('orders')
    // For longer than the lease lasts without them: 3 s.
    for (let beat = 0; beat < 20; beat++) await once(client as never, 'heartbeat')
    expect((await registry.find('orders'))[0]!.token).toBe(first!.token)
    await store.revoke({ target: { lease: first!.lease } })
    await once(client as never, 'registered')
    expect((await registry.find('orders'))[0]!.token).toBeGreaterThan(first!.token)
  }, 30_000)

  it('keeps most instances when half of them vanish at once, until the brake lets go', async () => {
    const HOLD = 5000
    const scene = await gatewayScene({ eureka: true, brake: { hold: HOLD } })
    const { client } = await eurekaClient(scene.url, 'orders', 8084)
    const addresses = Array.from({ length: 8 }, (_, at) => `10.0.0.${at}:80`)
    const { lost, die } = await massFailure(scene, 'mass', addresses)
    const used = () => client.getInstancesByAppId('MASS').length
    await expect.poll(used, WAIT).toBe(8)
    die()
    // The first two leave as usual. The brake holds back the other two.
    await expect.poll(used, WAIT).toBe(6)
    for (;;) {
      const count = used()
      if (performance.now() > lost[0]! + HOLD) break
      expect(count).toBe(6)
      await once(client as never, 'registryUpdated')
    }
    await expect.poll(used, WAIT).toBe(4)
    expect(lost).toHaveLength(4)
  }, 60_000)

  it('keeps what it knew while the server is down, and its registration survives', async () => {
    const { registry, url, restart } = await gatewayScene({ eureka: true })
    const { client } = await eurekaClient(url, 'orders', 8083)
    await expect.poll(() => client.getInstancesByAppId('ORDERS').length, WAIT).toBe(1)
    const [first] = await registry.find('orders')
    await restart(async () => {
      expect(client.getInstancesByAppId('ORDERS')).toHaveLength(1)
    })
    await once(client as never, 'heartbeat')
    expect((await registry.find('orders'))[0]!.token).toBe(first!.token)
  }, 30_000)
})

describe('the REST protocol of Eureka', () => {
  const instanceOf = (id: string, more: object = {}) => ({
    instance: { instanceId: id, hostName: 'h', ipAddr: '10.0.0.7', port: { $: 80 }, ...more },
  })
  const caller = (url: string, accessToken?: string) => {
    const authorization =
      accessToken === undefined ? {} : { authorization: `Bearer ${accessToken}` }
    const send = async (method: string, path: string, body?: object, headers: object = {}) =>
      fetch(`${url}/eureka/v2/${path}`, {
        method,
        headers: {
          ...authorization,
          ...headers,
          ...(body && { 'content-type': 'application/json' }),
        },
        ...(body && { body: JSON.stringify(body) }),
      })
    const status = async (...call: Parameters<typeof send>) => (await send(...call)).status
    const applications = async (path: string) => {
      const answer = await send('GET', path, undefined, JSON_ONLY)
      return ((await answer.json()) as never)['applications'] as {
        apps__hashcode: string
        application: { name: string; instance: (EurekaInstance & { actionType: string })[] }[]
      }
    }
    return { send, status, applications }
  }

  it('answers XML unless JSON is asked for, and escapes what instances wrote', async () => {
    const { registry, url } = await gatewayScene({ eureka: true })
    await registry.register('web', {
      id: 'w<1>',
      address: 'https://10.0.0.7:8443',
      metadata: { '1 & 2': '<b>"' },
    })
    const { send } = caller(url)
    await expect
      .poll(async () => (await send('GET', 'apps')).text(), WAIT)
      .toContain('<instanceId>w&#60;1&#62;</instanceId>')
    const xml = await (await send('GET', 'apps')).text()
    expect(xml).toContain('<apps__hashcode>UP_1_</apps__hashcode>')
    expect(xml).toContain('<securePort enabled="true">8443</securePort>')
    expect(xml).toContain('<port enabled="false">7001</port>')
    expect(xml).toContain('<_1___2>&#60;b&#62;&#34;</_1___2>')
    expect(await (await send('GET', 'apps/web', undefined, JSON_ONLY)).json()).toMatchObject({
      application: { name: 'WEB', instance: [{ instanceId: 'w<1>', vipAddress: 'web' }] },
    })
    expect(await (await send('GET', 'vips/web')).text()).toContain('w&#60;1&#62;')
    expect((await send('GET', 'apps/NOTHING')).status).toBe(404)
  })

  it('answers what all clients can read, whatever others registered', async () => {
    const { registry, url } = await gatewayScene({ eureka: true })
    await registry.register('web', {
      id: 'hostile',
      address: '10.0.0.7:80',
      metadata: {
        ...{ 'eureka.ports': '{"plain":"x","secure":null}', 'eureka.interval': 'NaN' },
        ...{ 'eureka.duration': '-1', '@a b': '1', '@a_b': '2', $: 'text', odd: 'a\ufffeb' },
      },
    })
    const { send, applications } = caller(url)
    const instances = async () => (await applications('apps')).application[0]?.instance ?? []
    await expect.poll(async () => (await instances()).length, WAIT).toBe(1)
    expect(await instances()).toMatchObject([
      {
        port: { $: 80, '@enabled': 'true' },
        leaseInfo: { renewalIntervalInSecs: 30, durationInSecs: 90 },
        metadata: { '_a b': '1', _a_b: '2', _: 'text' },
      },
    ])
    const xml = await (await send('GET', 'apps')).text()
    expect(xml).toContain('<port enabled="true">80</port>')
    expect(xml).toContain('<metadata><')
    expect(xml).toContain('<odd>ab</odd>')
  })

  it('neither renews nor ends what other protocols registered', async () => {
    const { registry, store, url } = await gatewayScene({ eureka: true })
    const { lease, claims } = await grantedWithLock(registry, store)
    const { status, send } = caller(url)
    for (const [method, path, body] of [
      ['PUT', 'apps/WEB/native', undefined],
      ['DELETE', 'apps/WEB/native', undefined],
      ['POST', 'apps/WEB', instanceOf('native')],
    ] as const) {
      expect([method, await status(method, path, body)]).toEqual([method, 403])
    }
    const answer = await send('DELETE', 'apps/WEB/native')
    expect(((await answer.json()) as { detail: string }).detail).toMatch(/not registered by Eureka/)
    expect((await store.read({ lease })).claims).toHaveLength(claims)
    // An operator may still take it out of service.
    expect(await status('PUT', 'apps/WEB/native/status?value=OUT_OF_SERVICE')).toBe(200)
    expect((await registry.find('web', { status: 'any' }))[0]!.status).toBe('maintenance')
  })

  /** A native registration whose lease also holds a lock. */
  async function grantedWithLock(
    registry: Awaited<ReturnType<typeof gatewayScene>>['registry'],
    store: Awaited<ReturnType<typeof gatewayScene>>['store'],
  ) {
    const { key, value } = registry.entry('web', 'native', { address: '10.0.0.7:80' })
    const claims = [{ key, value }, { key: 'locks/reports' }]
    const granted = await store.grant({ holder: 'native', ttl: 60_000, claims })
    if (granted.outcome === 'busy') throw new Error('busy')
    return { lease: granted.lease, claims: claims.length }
  }

  it('lets an operator override a status, and takes it back', async () => {
    const { registry, url } = await gatewayScene({ eureka: true })
    const { status, applications } = caller(url)
    expect(await status('POST', 'apps/WEB', instanceOf('w1'))).toBe(204)
    const shown = async () => (await applications('apps')).application[0]?.instance[0]?.status
    await expect.poll(shown, WAIT).toBe('UP')
    expect(await status('PUT', 'apps/WEB/w1/status?value=OUT_OF_SERVICE')).toBe(200)
    await expect.poll(shown, WAIT).toBe('OUT_OF_SERVICE')
    expect((await registry.find('web', { status: 'any' }))[0]!.status).toBe('maintenance')
    // The heartbeat of the instance does not take it back.
    expect(await status('PUT', 'apps/WEB/w1?status=UP')).toBe(200)
    expect(await shown()).toBe('OUT_OF_SERVICE')
    expect(await status('DELETE', 'apps/WEB/w1/status?value=UP')).toBe(200)
    await expect.poll(shown, WAIT).toBe('UP')
    expect(await status('PUT', 'apps/WEB/w1?status=DOWN')).toBe(200)
    await expect.poll(shown, WAIT).toBe('DOWN')
  })

  it('reports what changed, with a hash code of everything', async () => {
    const { registry, url } = await gatewayScene({ eureka: true })
    const { applications } = caller(url)
    const stays = await registry.register('web', { id: 'stays', address: '10.0.0.1:80' })
    const leaves = await registry.register('web', { id: 'leaves', address: '10.0.0.2:80' })
    const delta = async () => {
      const { apps__hashcode, application } = await applications('apps/delta')
      const all = application.flatMap(({ instance }) => instance)
      return [apps__hashcode, ...all.map((one) => `${one.instanceId} ${one.actionType}`).sort()]
    }
    await expect.poll(delta, WAIT).toEqual(['UP_2_', 'leaves ADDED', 'stays ADDED'])
    await stays.report('critical')
    await expect.poll(delta, WAIT).toEqual(['DOWN_1_UP_1_', 'leaves ADDED', 'stays MODIFIED'])
    await leaves.release()
    await expect.poll(delta, WAIT).toEqual(['DOWN_1_', 'leaves DELETED', 'stays MODIFIED'])
  })

  it('gives a registration to the access token that made it, and shows what a token may read', async () => {
    const { url, createToken, restart } = await gatewayScene(
      { eureka: true },
      { secretsKey: Buffer.alloc(32, 7) },
    )
    await createToken('root', 'all:')
    const rights = ['claim,read:services/web/']
    const mine = caller(url, await createToken('mine', ...rights))
    const other = caller(url, await createToken('other', ...rights))
    const reader = caller(url, await createToken('reader', 'read:services/mail/'))
    const locker = caller(url, await createToken('locker', 'all:locks/'))
    expect(await mine.status('POST', 'apps/WEB', instanceOf('w1'))).toBe(204)
    expect(await mine.status('POST', 'apps/WEB', instanceOf('w1'))).toBe(204)
    expect(await mine.status('POST', 'apps/MAIL', instanceOf('w1'))).toBe(403)
    for (const [method, path] of [
      ['PUT', 'apps/WEB/w1'],
      ['DELETE', 'apps/WEB/w1'],
      ['PUT', 'apps/WEB/w1/status?value=DOWN'],
    ] as const) {
      expect([method, path, await other.status(method, path)]).toEqual([method, path, 403])
    }
    expect(await other.status('POST', 'apps/WEB', instanceOf('w1'))).toBe(403)
    await expect.poll(async () => (await mine.applications('apps')).apps__hashcode).toBe('UP_1_')
    expect(await reader.applications('apps')).toMatchObject({ apps__hashcode: '', application: [] })
    expect(await reader.applications('apps/delta')).toMatchObject({ application: [] })
    expect(await locker.status('GET', 'apps')).toBe(403)
    expect(await caller(url).status('GET', 'apps')).toBe(401)
    await restart(async () => {})
    // The first request may meet a connection of the old server.
    await expect.poll(() => mine.status('PUT', 'apps/WEB/w1').catch(() => 0), WAIT).toBe(200)
    expect(await mine.status('DELETE', 'apps/WEB/w1')).toBe(200)
    expect(await mine.status('PUT', 'apps/WEB/w1')).toBe(404)
  })

  it('refuses hostile registrations, and says what is wrong', async () => {
    const { url } = await gatewayScene({ eureka: true })
    const { send } = caller(url)
    const refused = async (path: string, body: object) => {
      const answer = await send('POST', path, body)
      return [answer.status, ((await answer.json()) as { detail: string }).detail]
    }
    const cases: [object, RegExp][] = [
      [{}, /instanceId/],
      [[], /instanceId/],
      [{ instance: { instanceId: 'x' } }, /ipAddr/],
      [instanceOf('a/b'), /slash/],
      [instanceOf('x', { status: 'BROKEN' }), /BROKEN.*UP/],
      [instanceOf('x', { leaseInfo: { durationInSecs: 1e9 } }), /durationInSecs/],
      [instanceOf('x', { port: { $: -1 } }), /-1/],
      [instanceOf('x', { port: { $: 70_000 } }), /70000.*65535/],
      [instanceOf('x'.repeat(600)), /id/],
      [instanceOf('x', { metadata: { big: 'x'.repeat(2000) } }), /metadata/],
    ]
    for (const [body, why] of cases) {
      const [status, detail] = await refused('apps/WEB', body)
      expect(detail).toMatch(why)
      expect(status).toBe(400)
    }
    // XML is not read at all, so neither are its entities.
    const xml = '<!DOCTYPE x [<!ENTITY a "aaaa">]><instance><app>&a;</app></instance>'
    const asXml = await fetch(`${url}/eureka/apps/WEB`, {
      ...{ method: 'POST', body: xml, headers: { 'content-type': 'application/xml' } },
    })
    expect(asXml.status).toBe(415)
    const big = await send('POST', 'apps/WEB', instanceOf('x', { metadata: 'x'.repeat(5e6) }))
    expect(big.status).toBe(413)
  })
})
