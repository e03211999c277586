import { describe, expect, it } from 'vitest'
import { Client } from '../../../../src/client/index.ts'
import { Leasehold, type Probe } from '../../../../src/index.ts'
import { checkedPolicy, Registry } from '../../../../src/recipes/index.ts'
import { TestClock, testStore } from '../../../../src/testing/index.ts'

const OK = { status: 'passing', note: '' } as const
const BAD = { status: 'critical', note: 'bad' } as const

describe('a checker', () => {
  it('creates a probe for its rules, if none is given', async () => {
    const { store, clock } = testStore()
    const client = new Client(store, { clock })
    const made: unknown[] = []
    const registry = new Registry(client, async () => ({
      networkProbe: (settings) => {
        made.push(settings)
        return async () => OK
      },
      networkRefusal: async () => undefined,
    }))
    const lookup = async () => []
    const checker = registry.checker({ allow: { loopback: true }, lookup, ca: 'pem' })
    await clock.advance(100)
    expect(made).toEqual([{ policy: checkedPolicy({ loopback: true }), lookup, ca: 'pem' }])
    await checker.close()
    await client.close()
  })

  it('that is no longer active after a stall writes and revokes nothing', async () => {
    const { store, clock } = testStore()
    const own = new TestClock()
    const stalled = await Leasehold.open(store, { clock: own, holder: 'stalled' })
    const { registry } = await Leasehold.open(store, { clock, holder: 'near' })
    const check = { tcp: true, every: '1m', timeout: '30s', down: 1, onCritical: 'revoke' } as const
    const me = await registry.register('s', { id: 'i', address: 'i:8080', check })
    let answer = (_: typeof BAD) => {}
    const probe: Probe = () =>
      new Promise((resolve) => {
        answer = resolve
      })
    const checker = stalled.registry.checker({ probe, brake: false, ttl: '10s' })
    await own.advance(2500)
    expect(checker.active).toBe(true)
    own.stall(20_000)
    answer(BAD)
    await clock.advance(10)
    expect((await store.read({ prefix: 'health/' })).keys).toEqual([])
    expect(me.state).toBe('present')
    await checker.close()
  })
})
