import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { describeWith, Engine, prometheus } from '../../../../leasehold/test/engines/index.ts'
import { exampleFile, gatewayScene, listening, massFailure } from '../gateway-scene.ts'

type Groups = { readonly targets: string[]; readonly labels: Record<string, string> }[]

async function targets(url: string, query = '', accessToken?: string): Promise<Groups> {
  const headers = accessToken === undefined ? {} : { authorization: `Bearer ${accessToken}` }
  const answer = await fetch(`${url}/prometheus/targets${query}`, { headers })
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
  return (await answer.json()) as Groups
}

describe('/prometheus/targets', () => {
  it('is off by default', async () => {
    const { url } = await gatewayScene({})
    expect((await fetch(`${url}/prometheus/targets`)).status).toBe(404)
  })

  it('lists every instance with its metadata, health, zone and lease', async () => {
    const { registry, url } = await gatewayScene({ prometheus: true })
    const web = await registry.register('web', {
      id: 'w1',
      address: 'https://10.0.0.7:8443/base',
      endpoints: { metrics: '[fd00::7]:9100' },
      zone: 'eu-1',
      tags: ['gpu', 'beta'],
      metadata: { 'git.commit': 'abc', 'git-commit': 'second' },
    })
    await web.report('critical', 'disk full')
    await registry.register('mail', { id: 'no-port', address: 'mail.example' })
    await expect.poll(() => targets(url)).toHaveLength(1)
    const [group] = await targets(url)
    expect(group!.targets).toEqual(['10.0.0.7:8443'])
    expect(group!.labels).toMatchObject({
      __scheme__: 'https',
      __meta_leasehold_service: 'web',
      __meta_leasehold_id: 'w1',
      __meta_leasehold_zone: 'eu-1',
      __meta_leasehold_tags: ',gpu,beta,',
      __meta_leasehold_metadata_git_commit: 'abc',
      __meta_leasehold_holder: 'near',
      __meta_leasehold_lease: expect.stringMatching(/./),
      __meta_leasehold_token: String(web.token),
    })
    await expect
      .poll(async () => (await targets(url))[0]!.labels['__meta_leasehold_status'])
      .toBe('critical')
    expect((await targets(url, '?endpoint=metrics'))[0]!.targets).toEqual(['[fd00::7]:9100'])
    expect(await targets(url, '?endpoint=constructor')).toEqual([])
    expect(await targets(url, '?service=mail&service=nothing')).toEqual([])
    expect(await targets(url, '?service=web')).toHaveLength(1)
  })

  it('shows what an access token may read, and refuses one that may read nothing', async () => {
    const { registry, url, createToken } = await gatewayScene({ prometheus: true })
    await registry.register('web', { id: 'w1', address: '10.0.0.7:80' })
    await registry.register('mail', { id: 'm1', address: '10.0.0.8:25' })
    await expect.poll(() => targets(url)).toHaveLength(2)
    await createToken('root', 'all:')
    const reader = await createToken('reader', 'read:services/web/')
    const locker = await createToken('locker', 'all:locks/')
    expect((await targets(url, '', reader)).map(({ targets: [one] }) => one)).toEqual([
      '10.0.0.7:80',
    ])
    const statusOf = async (authorization?: string) =>
      (
        await fetch(`${url}/prometheus/targets`, {
          headers: authorization ? { authorization: `Bearer ${authorization}` } : {},
        })
      ).status
    // After a refusal, Prometheus keeps what it had.
    expect(await Promise.all([statusOf(), statusOf('lh_no'), statusOf(locker)])).toEqual([
      401, 401, 403,
    ])
  })
})

/** Prometheus applies changes at most every 5 s. */
const HOLD = 12_000
const PROMETHEUS = prometheus((folder) => join(folder, 'prometheus.yml'))

describeWith(PROMETHEUS, 'Prometheus with examples/discovery/prometheus.yml', () => {
  let scene: Awaited<ReturnType<typeof gatewayScene>>
  let engine: Engine

  beforeAll(async () => {
    scene = await gatewayScene({ prometheus: true, eureka: true, brake: { hold: HOLD } })
    const config = parse(readFileSync(exampleFile('prometheus.yml'), 'utf8'))
    config.global = { scrape_interval: '200ms', scrape_timeout: '200ms' }
    const [discovery] = config.scrape_configs[0].http_sd_configs
    discovery.url = discovery.url.replace('http://127.0.0.1:7420', scene.url)
    discovery.refresh_interval = '200ms'
    config.scrape_configs.push({
      job_name: 'eureka',
      metrics_path: '/stats',
      eureka_sd_configs: [{ server: `${scene.url}/eureka`, refresh_interval: '200ms' }],
      relabel_configs: [
        { source_labels: ['__meta_eureka_app_instance_id'], target_label: 'instance' },
        { source_labels: ['__meta_eureka_app_instance_metadata_zone'], target_label: 'zone' },
      ],
    })
    const prepare = (folder: string) =>
      writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config))
    engine = await Engine.start({ ...PROMETHEUS, prepare })
  })
  afterAll(() => engine?.stop())

  /** All targets, whether a scrape was successful in time or not. */
  async function active() {
    const answer = await fetch(`http://127.0.0.1:${engine.port}/api/v1/targets?state=active`)
    const { data } = (await answer.json()) as {
      data: { activeTargets: { labels: Record<string, string>; health: string }[] }
    }
    return data.activeTargets
  }

  /** The instances that it scrapes with success. */
  async function scraped(): Promise<string[]> {
    const up = (await active()).filter(({ health }) => health === 'up')
    return up.map(({ labels }) => `${labels['job']}/${labels['instance']} ${labels['zone']}`).sort()
  }

  it('scrapes what is registered, and drops what left or lost its lease', async () => {
    const { registry, store, restart } = scene
    const wait = { timeout: 30_000, interval: 50 }
    const address = await listening((request, response) => {
      response.statusCode = request.url === '/stats' ? 200 : 404
      response.end('up_here 1\n')
    })
    const metadata = { metrics_path: '/stats' }
    const spec = { address, metadata, zone: 'eu-1' }
    // One that tries to make the lists unreadable. Nothing listens there.
    await registry.register('hostile', {
      ...{ id: 'hostile', address: '127.0.0.1:1' },
      metadata: { 'eureka.ports': '{"plain":"x"}', '@a': '<', $: '&', odd: '\ufffe', '1"': '"' },
    })
    await registry.register('web', { id: 'stays', ...spec })
    const leaves = await registry.register('web', { id: 'leaves', ...spec })
    const { key, value } = registry.entry('web', 'dies', spec)
    const granted = await store.grant({ holder: 'dead', ttl: 3000, claims: [{ key, value }] })
    if (granted.outcome === 'busy') throw new Error('busy')
    const heartbeat = setInterval(() => store.renew([granted.lease]).catch(() => {}), 500)
    // By http_sd and by eureka_sd.
    const both = (...ids: string[]) =>
      ['eureka', 'web'].flatMap((job) => ids.map((id) => `${job}/${id} eu-1`))
    await expect.poll(scraped, wait).toEqual(both('dies', 'leaves', 'stays'))
    clearInterval(heartbeat)
    await leaves.release()
    await expect.poll(scraped, wait).toEqual(both('stays'))
    // While the server is down, it keeps what it had.
    await restart(async () => {
      await new Promise((resolve) => setTimeout(resolve, 1000))
      expect(await scraped()).toEqual(both('stays'))
    })
    await registry.register('web', { id: 'new', ...spec })
    await expect.poll(scraped, wait).toEqual(both('new', 'stays'))
  }, 90_000)

  it('keeps most targets when half of them vanish at once, until the brake lets go', async () => {
    const wait = { timeout: 30_000, interval: 50 }
    const address = await listening((_, response) => response.end('up_here 1\n'))
    const { lost, die } = await massFailure(scene, 'mass', Array(8).fill(address))
    const counts = async () => {
      const all = (await active()).map(({ labels }) => `${labels['job']} ${labels['instance']}`)
      return ['eureka', 'mass'].map(
        (job) => all.filter((each) => new RegExp(`^${job} (alive|dead)-`).test(each)).length,
      )
    }
    await expect.poll(counts, wait).toEqual([8, 8])
    die()
    await expect.poll(counts, wait).toEqual([6, 6])
    for (;;) {
      const both = await counts()
      if (performance.now() > lost[0]! + HOLD) break
      expect(both).toEqual([6, 6])
    }
    await expect.poll(counts, wait).toEqual([4, 4])
    expect(lost).toHaveLength(4)
  }, 120_000)
})
