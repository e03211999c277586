import { Leasehold } from 'leasehold'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Reader, Scene } from '../scene.ts'

let scene: Scene
let leasehold: Leasehold
beforeEach(async () => {
  scene = await Scene.open()
  leasehold = await Leasehold.open(scene.server.url, { holder: 'program' })
})
afterEach(async () => {
  await leasehold.close()
  await scene.close()
})

const BASE = '/v1/elections/scheduler'
const KEY = 'election/scheduler/line'
const campaign = (query: string) => scene.ask(`POST ${BASE}?${query}`)
const keep = (lease: string, more = '') => scene.ask(`PUT ${BASE}?lease=${lease}${more}`)

describe('an election over HTTP', () => {
  it('is won, kept, seen by programs, and resigned', async () => {
    const won = await campaign('candidate=a&value=10.0.0.1&ttl=20s')
    expect(won.status).toBe(201)
    const { lease, term } = won.body
    expect(won.body).toMatchObject({ election: 'scheduler', candidate: 'a', remaining: 20_000 })
    expect(await leasehold.election('scheduler').leader()).toMatchObject({
      ...{ candidate: 'a', term, value: '10.0.0.1' },
    })
    expect((await keep(lease)).body).toMatchObject({ candidate: 'a', term, remaining: 20_000 })
    expect((await keep(lease, '&value=10.0.0.2')).status).toBe(200)
    const { body } = await scene.ask(`GET ${BASE}`)
    expect(body.leader).toMatchObject({ candidate: 'a', value: '10.0.0.2', token: term })
    expect(body.candidates).toHaveLength(1)
    await leasehold.election('with/slash').campaign()
    expect((await scene.ask('GET /v1/elections')).body.elections).toEqual([
      'scheduler',
      'with/slash',
    ])
    expect((await scene.ask(`DELETE ${BASE}?lease=${lease}`)).body).toEqual({ ended: true })
    expect((await scene.ask(`GET ${BASE}`)).body).toEqual({ election: 'scheduler', candidates: [] })
    const late = await keep(lease)
    expect([late.status, late.body.code, late.body.why]).toEqual([410, 'lost', 'resigned'])
  })

  it('has one leader: others learn who leads, or wait, and programs wait behind', async () => {
    const first = (await campaign('candidate=a')).body
    expect((await campaign('candidate=b')).status).toBe(409)
    const timed = await campaign('candidate=b&wait=50ms')
    expect([timed.status, timed.body.code]).toEqual([409, 'timeout'])
    expect(timed.body.detail).toMatch(/a leads/)
    const waiting = campaign('candidate=b&wait=20s')
    await scene.claims(KEY, 2)
    const program = leasehold.election('scheduler').campaign()
    await scene.claims(KEY, 3)
    await scene.ask(`DELETE ${BASE}?lease=${first.lease}`)
    const second = (await waiting).body
    expect(second.term).toBeGreaterThan(first.term)
    await scene.ask(`DELETE ${BASE}?lease=${second.lease}`)
    const term = await program
    expect(term.number).toBeGreaterThan(second.term)
    await term.resign()
  })

  it('lets a candidate with a higher priority pass, and says that one asks for the term', async () => {
    const first = (await campaign('candidate=a')).body
    const low = campaign('candidate=low&wait=20s')
    await scene.claims(KEY, 2)
    const high = campaign('candidate=high&priority=5&preempt=true&wait=20s')
    await scene.claims(KEY, 3)
    expect((await keep(first.lease)).body.asked).toMatchObject({ candidate: 'high', priority: 5 })
    await scene.ask(`DELETE ${BASE}?lease=${first.lease}`)
    const { body } = await Promise.race([low, high])
    expect(body.candidate).toBe('high')
    await scene.ask(`DELETE ${BASE}?lease=${body.lease}`)
    expect((await low).body.candidate).toBe('low')
  })

  it('leaves the queue when the connection is closed', async () => {
    await campaign('candidate=a')
    const sent = await scene.begin('POST', `${BASE}?candidate=b&wait=60s`)
    await scene.claims(KEY, 2)
    sent.destroy()
    await scene.claims(KEY, 1)
  })

  it('reports a forced end with its reason', async () => {
    const { lease } = (await campaign('candidate=a')).body
    await scene.ask(`DELETE /v1/leases/${lease}?by=ops&why=disk+full`)
    const { status, body } = await keep(lease)
    expect([status, body.by, body.why]).toEqual([410, 'ops', 'disk full'])
  })

  it('renews a claim on its key that has a foreign value, as a candidate with defaults', async () => {
    for (const value of ['not JSON', '[1]', '{"candidate":5,"priority":"x"}']) {
      const { store } = scene
      const granted = await store.grant({ holder: 'h', ttl: 9000, claims: [{ key: KEY, value }] })
      if (granted.outcome === 'busy') throw new Error('busy')
      const { status, body } = await keep(granted.lease)
      expect([status, body.candidate, body.term]).toEqual([200, 'h', granted.token])
      expect((await scene.ask(`DELETE ${BASE}?lease=${granted.lease}`)).status).toBe(200)
    }
  })

  it('is observed: who leads now, and each change', async () => {
    const reader = await Reader.open(`${scene.server.url}${BASE}/events`)
    const leader = async () => {
      const { event, data } = (await reader.next())!
      expect(event).toBe('leader')
      return (typeof data === 'string' ? JSON.parse(data) : data).leader
    }
    expect(await leader()).toBeNull()
    const { lease, term } = (await campaign('candidate=a')).body
    const seen = await leader()
    expect(seen).toMatchObject({ candidate: 'a', term })
    expect(Number.isInteger(seen.since)).toBe(true)
    await scene.ask(`DELETE ${BASE}?lease=${lease}`)
    expect(await leader()).toBeNull()
    reader.close()
  })
})
