import { Leasehold } from 'leasehold'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { openConsul, put } from './open-consul.ts'

interface HealthEntry {
  readonly Service: { readonly ID: string; readonly Address: string; readonly Port: number }
  readonly Checks: readonly {
    readonly CheckID: string
    readonly Status: string
    readonly Output: string
  }[]
}

describe('services of the Consul API', () => {
  let scene: Awaited<ReturnType<typeof openConsul>>
  let library: Leasehold

  beforeEach(async () => {
    scene = await openConsul()
    library = await Leasehold.open(scene.store, { clock: scene.clock, holder: 'library' })
  })
  afterEach(async () => {
    await library.close()
    await scene.gateway.close()
  })

  const get = async (path: string) => {
    const response = await fetch(`${scene.url}/${path}`)
    return {
      status: response.status,
      index: Number(response.headers.get('x-consul-index')),
      body: (await response.json()) as HealthEntry[],
    }
  }
  const register = (service: object) =>
    put(scene.url, 'agent/service/register', JSON.stringify(service))
  const statuses = async (service: string) =>
    (await get(`health/service/${service}`)).body.map(({ Service, Checks }) => [
      Service.ID,
      ...Checks.filter(({ CheckID }) => CheckID !== 'serfHealth').map(
        ({ CheckID, Status, Output }) => `${CheckID} ${Status} ${Output}`.trim(),
      ),
    ])
  const passing = async (service: string) =>
    (await get(`health/service/${service}?passing`)).body.map(({ Service }) => Service.ID)

  it('registers, checks, finds and deregisters with npm consul', async () => {
    const { agent, health, catalog } = scene.client
    const check = { name: 'own', ttl: '10s', timeout: '1s', notes: 'by hand' }
    await agent.service.register({ name: 'web', id: 'w1', address: '10.0.0.7', port: 80, check })
    await agent.service.register({ name: 'web', id: 'w2', port: 81, tags: ['v2'] })
    expect(Object.keys((await agent.service.list()) as object)).toEqual(['w1', 'w2'])
    expect(await catalog.service.list()).toEqual({ web: ['v2'] })
    expect(await catalog.service.nodes('web')).toMatchObject([
      { ServiceID: 'w1', ServicePort: 80 },
      { ServiceID: 'w2', ServicePort: 81 },
    ])
    expect(await health.service({ service: 'web', passing: true })).toHaveLength(1)
    await agent.check.pass('service:w1')
    expect(await health.service({ service: 'web', passing: true })).toHaveLength(2)
    expect(await health.service({ service: 'web', tag: 'v2' })).toHaveLength(1)
    await agent.check.warn({ id: 'service:w1', note: 'slow' })
    expect(await health.checks('web')).toMatchObject([{ Status: 'warning', Output: 'slow' }])
    expect(await health.state('warning')).toHaveLength(1)
    await agent.check.fail('service:w1')
    expect(await agent.check.list()).toMatchObject({ 'service:w1': { Status: 'critical' } })
    await agent.service.maintenance({ id: 'w2', enable: true, reason: 'new disks' })
    expect(await passing('web')).toEqual([])
    await agent.service.maintenance({ id: 'w2', enable: false })
    expect(await passing('web')).toEqual(['w2'])
    await agent.check.register({ name: 'more', serviceid: 'w2', ttl: '1m', timeout: '1s' })
    expect(await passing('web')).toEqual([])
    await agent.check.deregister('more')
    await agent.service.deregister('w1')
    await agent.service.deregister('w2')
    expect(await catalog.service.list()).toEqual({})
    expect((await scene.store.read({ leases: true })).leases).toEqual([])
  })

  it('tells a watch of npm consul each change of the health of a service', async () => {
    const { client } = scene
    const watch = client.watch({ method: client.health.service, options: { service: 'web' } })
    const seen: unknown[] = []
    watch.on('change', (data: HealthEntry[]) => {
      seen.push(data.map(({ Service, Checks }) => [Service.ID, Checks.at(-1)!.Status]))
    })
    await expect.poll(() => seen).toEqual([[]])
    await register({ Name: 'web', ID: 'w1', Check: { TTL: '10s' } })
    await expect.poll(() => seen.at(-1)).toEqual([['w1', 'critical']])
    await put(scene.url, 'agent/check/pass/service:w1')
    await expect.poll(() => seen.at(-1)).toEqual([['w1', 'passing']])
    await register({ Name: 'other' })
    await put(scene.url, 'agent/service/deregister/w1')
    await expect.poll(() => seen.at(-1)).toEqual([])
    watch.end()
    expect(seen).toHaveLength(4)
  })

  it('shows the instances of the library, and shows its own to the library', async () => {
    const { registry } = library
    const one = await registry.register('web', {
      ...{ id: 'lib', address: 'http://10.0.0.9:8080', tags: ['x'], metadata: { a: 'b' } },
    })
    await register({ Name: 'web', ID: 'con', Address: '10.0.0.7', Port: 80, Tags: ['x'] })
    const { body } = await get('health/service/web?tag=x')
    expect(body.map(({ Service }) => [Service.ID, Service.Address, Service.Port])).toEqual([
      ['con', '10.0.0.7', 80],
      ['lib', '10.0.0.9', 8080],
    ])
    const found = await registry.find('web', { tags: ['x'] })
    expect(found.map(({ id, address }) => [id, address])).toEqual([
      ['con', '10.0.0.7:80'],
      ['lib', 'http://10.0.0.9:8080'],
    ])
    await one.report('critical', 'no disk')
    await expect
      .poll(() => statuses('web'))
      .toEqual([['con'], ['lib', 'leasehold:lib critical no disk']])
    expect(await passing('web')).toEqual(['con'])
    await one.report('passing')
    await one.maintenance(true, 'new disks')
    await expect.poll(() => passing('web')).toEqual(['con'])
    await one.maintenance(false)
    await expect.poll(() => passing('web')).toEqual(['con', 'lib'])
    await one.release()
    await expect.poll(() => passing('web')).toEqual(['con'])
  })

  it('drains and deregisters an instance of the library, and does not change it otherwise', async () => {
    const { registry } = library
    const one = await registry.register('web', { id: 'lib', address: '10.0.0.9:80' })
    const maintain = (enable: boolean) =>
      put(scene.url, `agent/service/maintenance/lib?enable=${enable}&reason=disks`)
    await maintain(true)
    expect(await passing('web')).toEqual([])
    // Its own reports do not end what an operator began.
    await one.report('passing')
    expect(await registry.find('web')).toEqual([])
    await maintain(false)
    expect(await passing('web')).toEqual(['lib'])
    expect(await register({ Name: 'web', ID: 'lib' })).toMatch(/not registered with Consul's API/)
    expect(await put(scene.url, 'agent/check/pass/leasehold:lib')).toMatch(/associated TTL|Unknown/)
    const ended = new Promise((resolve) => one.signal.addEventListener('abort', resolve))
    await put(scene.url, 'agent/service/deregister/lib')
    await ended
    expect(await passing('web')).toEqual([])
  })

  it('turns a ttl check critical when its ttl passes, for the library too', async () => {
    const { clock, url } = scene
    await register({ Name: 'web', Check: { TTL: '10s' } })
    expect(await statuses('web')).toEqual([['web', 'service:web critical']])
    await put(url, 'agent/check/pass/service:web?note=fine')
    for (let at = 0; at < 3; at++) {
      await clock.advance(9000)
      await put(url, 'agent/check/pass/service:web?note=fine')
    }
    expect(await statuses('web')).toEqual([['web', 'service:web passing fine']])
    expect(await library.registry.find('web')).toHaveLength(1)
    await clock.advance(10_000)
    const expired = 'TTL expired (last output before timeout follows): fine'
    await expect.poll(() => statuses('web')).toEqual([['web', `service:web critical ${expired}`]])
    expect(await library.registry.find('web')).toEqual([])
    await put(url, 'agent/check/pass/service:web')
    expect(await statuses('web')).toEqual([['web', 'service:web passing']])
  })

  it('writes nothing when a ttl check passes again with the same output', async () => {
    await register({ Name: 'web', Check: { TTL: '10s' } })
    await put(scene.url, 'agent/check/pass/service:web')
    const { revision } = await scene.store.read({ key: 'any' })
    await put(scene.url, 'agent/check/pass/service:web')
    expect((await scene.store.read({ key: 'any' })).revision).toBe(revision)
  })

  it('loses no report of checks of one service that come at once', async () => {
    const Checks = Array.from({ length: 8 }, (_, at) => ({ CheckID: `c${at}`, TTL: '10s' }))
    await register({ Name: 'web', Checks })
    await Promise.all(Checks.map(({ CheckID }) => put(scene.url, `agent/check/pass/${CheckID}`)))
    expect(await passing('web')).toEqual(['web'])
  })

  it('expires after a restart what nobody renewed meanwhile', async () => {
    const { clock, start } = scene
    await register({ Name: 'web', Check: { TTL: '10s', Status: 'passing' } })
    await scene.gateway.close()
    await clock.advance(10_100)
    scene.gateway = await start()
    scene.url = `http://127.0.0.1:${scene.gateway.port}/v1`
    expect(await statuses('web')).toEqual([['web', 'service:web critical TTL expired']])
  })

  it('runs an HTTP check with the checker of the registry', async () => {
    const { clock } = scene
    let isWell = false
    const targets: object[] = []
    const probe = async (target: object) => {
      targets.push(target)
      return { status: isWell ? ('passing' as const) : ('critical' as const), note: 'probed' }
    }
    const checker = library.registry.checker({ probe })
    const HTTP = 'http://10.0.0.7:80/health'
    await register({
      ...{ Name: 'web', Address: '10.0.0.7', Port: 80 },
      Check: { HTTP, Interval: '5s', Timeout: '1s', FailuresBeforeCritical: 2 },
    })
    expect(await statuses('web')).toEqual([['web', 'service:web critical']])
    isWell = true
    await clock.advance(30_000)
    await expect.poll(() => statuses('web')).toEqual([['web', 'service:web passing probed']])
    expect(targets[0]).toMatchObject({ scheme: 'http', host: '10.0.0.7', path: '/health' })
    isWell = false
    await clock.advance(30_000)
    await expect.poll(() => passing('web')).toEqual([])
    await checker.close()
  })

  it('deregisters a service that is critical for longer than it allows', async () => {
    const { clock, url } = scene
    const Check = { TTL: '10s', DeregisterCriticalServiceAfter: '90s', Status: 'passing' }
    await register({ Name: 'web', Check })
    await register({ Name: 'kept', Check: { TTL: '10s' } })
    await clock.advance(10_000)
    await expect.poll(() => passing('web')).toEqual([])
    await clock.advance(80_000)
    await put(url, 'agent/check/pass/service:web')
    await clock.advance(10_000)
    await expect.poll(() => passing('web')).toEqual([])
    // The time begins again with each critical state.
    await clock.advance(89_000)
    expect(await statuses('web')).toHaveLength(1)
    await clock.advance(1000)
    await expect.poll(() => statuses('web')).toEqual([])
    expect(await statuses('kept')).toHaveLength(1)
  })

  it('does not deregister a service for a critical check that was deregistered', async () => {
    const { clock, url } = scene
    const check = { TTL: '24h', DeregisterCriticalServiceAfter: '90s' }
    const Checks = [
      { ...check, CheckID: 'gone' },
      { ...check, CheckID: 'stays', Status: 'passing' },
    ]
    await register({ Name: 'web', Checks })
    await put(url, 'agent/check/deregister/gone')
    await clock.advance(90_000)
    expect(await passing('web')).toEqual(['web'])
  })

  it('lives on without its process and over a restart of the server', async () => {
    const { clock, start } = scene
    await register({ Name: 'web', Port: 80 })
    await clock.advance(86_400_000)
    await scene.gateway.close()
    scene.gateway = await start()
    scene.url = `http://127.0.0.1:${scene.gateway.port}/v1`
    expect(await passing('web')).toEqual(['web'])
    await put(scene.url, 'agent/service/deregister/web')
    expect(await passing('web')).toEqual([])
  })

  it('answers a blocking query when its service changes, and no other', async () => {
    await register({ Name: 'web', Check: { TTL: '10s' } })
    const { index } = await get('health/service/web')
    expect(index).toBeGreaterThan(0)
    let isAnswered = false
    const blocked = get(`health/service/web?passing&index=${index}&wait=60s`).then((answer) => {
      isAnswered = true
      return answer
    })
    await register({ Name: 'other' })
    await get('health/service/other')
    expect(isAnswered).toBe(false)
    await put(scene.url, 'agent/check/pass/service:web')
    const answer = await blocked
    expect(answer.body).toHaveLength(1)
    expect(answer.index).toBeGreaterThan(index)
    expect(answer.index).toBe((await scene.store.read({ key: 'any' })).revision)
  })

  it('holds 1,000 blocking queries for health without a read, and answers all at a change', async () => {
    const { url, store, clock } = scene
    await register({ Name: 'web', Check: { TTL: '24h' } })
    const { index } = await get('health/service/web')
    const timers = vi.spyOn(clock, 'timer')
    const held = Array.from({ length: 1000 }, () =>
      get(`health/service/web?index=${index}&passing`),
    )
    await expect.poll(() => timers.mock.calls.length, { timeout: 240_000 }).toBe(1000)
    const reads = vi.spyOn(store, 'read')
    await clock.advance(60_000)
    expect(reads).not.toHaveBeenCalled()
    await put(url, 'agent/check/pass/service:web')
    const answers = await Promise.all(held)
    expect(new Set(answers.map((answer) => answer.index)).size).toBe(1)
    expect(answers.every(({ body }) => body.length === 1)).toBe(true)
  }, 300_000)

  it('refuses what it cannot do, instead of doing something else', async () => {
    const check = (Check: object) => register({ Name: 'web', Check })
    expect(await check({ Args: ['true'], Interval: '1s' })).toMatch(/no checks with args/)
    expect(await check({ HTTP: 'http://x', Method: 'POST', Interval: '1s' })).toMatch(/no method/)
    expect(await check({ HTTP: 'http://169.254.169.254/', Interval: '1s' })).toMatch(
      /never allowed/,
    )
    const HTTP = 'http://10.0.0.7:80'
    const two = [
      { HTTP, Interval: '1s' },
      { TCP: '10.0.0.7:80', Interval: '1s' },
    ]
    expect(await register({ Name: 'web', Checks: two })).toMatch(/one HTTP, TCP or GRPC check/)
    expect(await register({ Name: 'web', Kind: 'connect-proxy' })).toMatch(/no kind/)
    expect(await passing('web')).toEqual([])
    for (const path of ['health/service/web?filter=x', 'catalog/services?node-meta=a:b']) {
      expect((await fetch(`${scene.url}/${path}`)).status).toBe(501)
    }
  })
})
