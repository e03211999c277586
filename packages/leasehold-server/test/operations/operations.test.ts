import { readFileSync } from 'node:fs'
import { Leasehold } from 'leasehold'
import { memoryStore } from 'leasehold/memory'
import { LeaseholdError, type LeaseStore } from 'leasehold/port'
import { remoteStore } from 'leasehold/remote'
import { afterEach, describe, expect, it } from 'vitest'
import { parseRight } from '../../src/access/index.ts'
import { createServer, type LeaseServer } from '../../src/index.ts'

const servers: LeaseServer[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

async function serve(store: LeaseStore = memoryStore()): Promise<LeaseServer> {
  const server = await createServer({ store, port: 0 })
  servers.push(server)
  return server
}

async function scrape(server: LeaseServer): Promise<Map<string, number>> {
  const response = await fetch(`${server.url}/metrics`)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  return samplesIn(await response.text())
}

/** Refuses what Prometheus would. */
function samplesIn(text: string): Map<string, number> {
  expect(text.endsWith('\n')).toBe(true)
  const samples = new Map<string, number>()
  let family = ''
  for (const line of text.trimEnd().split('\n')) {
    const head = /^# (HELP|TYPE) (\w+) (.+)$/.exec(line)
    if (head) {
      family = head[2]!
      continue
    }
    const sample = /^(\w+)(\{\w+="(?:[^"\\\n]|\\.)*"(?:,\w+="(?:[^"\\\n]|\\.)*")*\})? (\S+)$/.exec(
      line,
    )
    expect(sample, line).not.toBeNull()
    expect(sample![1]).toMatch(new RegExp(`^${family}(_bucket|_sum|_count)?$`))
    expect(Number(sample![3])).not.toBeNaN()
    samples.set(sample![1]! + (sample![2] ?? ''), Number(sample![3]))
  }
  return samples
}

describe('/metrics', () => {
  it('counts grants, renewals, waiters and connections, and times commits', async () => {
    const server = await serve()
    await scrape(server)
    const store = await remoteStore(server.url)
    const granted = await store.grant({ holder: 'a', ttl: 60_000, claims: [{ key: 'k' }] })
    await store.grant({ holder: 'b', ttl: 60_000, claims: [{ key: 'k' }] })
    if (granted.outcome !== 'granted') throw new Error('busy')
    await store.renew([granted.lease, granted.lease])
    const busy = await scrape(server)
    expect(busy.get('leasehold_grants_total')).toBe(2)
    expect(busy.get('leasehold_calls_total{operation="renew"}')).toBe(1)
    expect(busy.get('leasehold_renewals_total')).toBe(2)
    expect(busy.get('leasehold_claims_total')).toBe(2)
    expect(busy.get('leasehold_waiting')).toBe(1)
    expect(busy.get('leasehold_connections')).toBe(1)
    expect(busy.get('leasehold_commit_seconds_count')).toBe(2)
    expect(busy.get('leasehold_commit_seconds_bucket{le="+Inf"}')).toBe(2)
    expect(busy.get('leasehold_ready')).toBe(1)
    await store.revoke({ target: { lease: granted.lease } })
    await store.close()
    const after = await scrape(server)
    expect(after.get('leasehold_waiting')).toBe(0)
    expect(after.get('leasehold_ended_claims_total{reason="revoked"}')).toBe(1)
  })

  it('counts what a client held when it was closed apart from revocations', async () => {
    const server = await serve()
    await scrape(server)
    const leasehold = await Leasehold.open(server.url)
    await leasehold.lock(['a', 'b'])
    await leasehold.close()
    const after = await scrape(server)
    expect(after.get('leasehold_ended_claims_total{reason="closed"}')).toBe(2)
    expect(after.get('leasehold_ended_claims_total{reason="revoked"}')).toBe(0)
  })

  it('does not count merged usage records of a pool as revocations', async () => {
    const server = await serve()
    await scrape(server)
    const store = await remoteStore(server.url)
    const claims = [{ key: 'pool/gpu/books', mode: 'shared' as const }]
    const granted = await store.grant({ holder: 'a', ttl: 60_000, claims })
    if (granted.outcome === 'busy') throw new Error('busy')
    await store.revoke({ target: { lease: granted.lease }, by: 'b', why: 'merged' })
    await store.close()
    const after = await scrape(server)
    expect(after.get('leasehold_ended_claims_total{reason="revoked"}')).toBe(0)
  })

  it('counts expiries, and measures how late one was', async () => {
    const server = await serve()
    await scrape(server)
    const store = await remoteStore(server.url)
    await store.grant({ holder: 'a', ttl: 20, claims: [{ key: 'k' }] })
    await expect
      .poll(async () => (await scrape(server)).get('leasehold_expiries_total'), { timeout: 10_000 })
      .toBe(1)
    await expect
      .poll(async () => (await scrape(server)).get('leasehold_expiry_lag_seconds_count'), {
        timeout: 10_000,
      })
      .toBeGreaterThan(0)
    const samples = await scrape(server)
    expect(samples.get('leasehold_expiry_lag_seconds_sum')).toBeGreaterThanOrEqual(0)
    // Looking is not counted as use.
    expect(samples.get('leasehold_grants_total')).toBe(1)
    await store.close()
  })

  it('requires the right to read everything once there are tokens, and reports their use', async () => {
    const server = await serve()
    const create = (name: string, right: string) =>
      server.access.tokens.create({ name, rights: [parseRight(right)] })
    const prometheus = await create('prometheus', 'read:')
    const worker = await create('worker', 'claim,read:jobs/')
    const get = (token?: string) =>
      fetch(`${server.url}/metrics`, { headers: token ? { authorization: `Bearer ${token}` } : {} })
    expect((await get()).status).toBe(401)
    expect((await get(worker)).status).toBe(403)
    const store = await remoteStore(server.url, { accessToken: worker })
    await store.grant({ holder: 'a', ttl: 60_000, claims: [{ key: 'jobs/1' }] })
    await expect(
      store.grant({ holder: 'a', ttl: 60_000, claims: [{ key: 'x' }] }),
    ).rejects.toThrow()
    const response = await get(prometheus)
    expect(response.status).toBe(200)
    const samples = samplesIn(await response.text())
    expect(samples.get('leasehold_principal_leases{principal="worker"}')).toBe(1)
    expect(samples.get('leasehold_principal_calls_total{principal="worker"}')).toBe(2)
    await store.close()
    for (const path of ['/healthz', '/readyz']) {
      expect((await fetch(server.url + path)).status).toBe(200)
    }
  })

  it('has the names that the documentation lists, and no others', async () => {
    const text = readFileSync(new URL('../../../../docs/server.md', import.meta.url), 'utf8')
    const listed = [...text.matchAll(/^\| `((?:leasehold|process|nodejs)_\w+)`/gm)].map(
      ([, name]) => name,
    )
    const body = await (await fetch(`${(await serve()).url}/metrics`)).text()
    const described = [...body.matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name)
    expect(listed).toEqual(described)
  })
})

describe('/readyz', () => {
  it('is not ready while the store cannot write, and ready again when it can', async () => {
    const store = memoryStore()
    let isFull = true
    const grant = store.grant.bind(store)
    const full = () => Promise.reject(new LeaseholdError('storage-full', 'there is no space'))
    store.grant = (request) => (isFull ? full() : grant(request))
    const server = await serve(store)
    const claimer = ({ access }: LeaseServer) =>
      access.tokens.create({ name: 'claimer', rights: [parseRight('claim:')] })
    const ready = async (headers: Record<string, string> = {}) => {
      const response = await fetch(`${server.url}/readyz`, { headers })
      return [response.status, await response.json()]
    }
    expect(await ready()).toEqual([200, { status: 'ready' }])
    const client = await remoteStore(server.url)
    await expect(client.grant({ holder: 'a', ttl: 1000 })).rejects.toThrow('no space')
    expect(await ready()).toEqual([503, { status: 'cannot write', reason: 'there is no space' }])
    expect((await scrape(server)).get('leasehold_ready')).toBe(0)
    expect(
      (await scrape(server)).get('leasehold_failures_total{code="storage-full"}'),
    ).toBeGreaterThan(0)
    isFull = false
    expect(await ready()).toEqual([200, { status: 'ready' }])
    const text = await server.access.tokens.create({ name: 'ops', rights: [parseRight('read:')] })
    const authorization = `Bearer ${text}`
    const known = await remoteStore(server.url, { accessToken: await claimer(server) })
    isFull = true
    await expect(known.grant({ holder: 'a', ttl: 1000 })).rejects.toThrow('no space')
    // The error is not shown to all clients.
    expect(await ready()).toEqual([503, { status: 'cannot write' }])
    const reason = 'there is no space'
    expect(await ready({ authorization })).toEqual([503, { status: 'cannot write', reason }])
    await known.close()
    await client.close()
  })
})
