import { describe, expect, it } from 'vitest'
import { Client } from '../../../src/client/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../faulty-store.ts'

function open() {
  const clock = new TestClock()
  const inner = memoryStore({ clock })
  const store = new FaultyStore(inner, clock)
  return { clock, inner, store, client: new Client(store, { clock, callTimeout: 1000 }) }
}

describe('a call without a hold', () => {
  it('is sent again when its answer was lost, and carried out once', async () => {
    const { clock, inner, store, client } = open()
    store.fault = () => (store.count('grant') === 1 ? { lost: 'reply' } : undefined)
    const granted = client.store.grant({ holder: 'me', ttl: 60_000, claims: [{ key: 'k' }] })
    await clock.advance(3000)
    expect(await granted).toMatchObject({ outcome: 'granted', holds: true })
    expect(store.count('grant')).toBe(2)
    expect(new Set(store.requests).size).toBe(1)
    expect((await inner.read({ leases: true })).leases).toHaveLength(1)
  })

  it('fails with timeout, as it is a read without an answer, and is not sent any more', async () => {
    const { clock, store, client } = open()
    store.fault = () => ({ lost: 'request' })
    const read = expect(client.store.read({ key: 'k' })).rejects.toThrowError(
      expect.objectContaining({ code: 'timeout' }),
    )
    await clock.advance(60_000)
    await read
    const sent = store.calls.length
    await clock.advance(60_000)
    expect(store.calls.length).toBe(sent)
  })

  it('is refused at once if the store refuses it', async () => {
    const { client, store } = open()
    await expect(client.store.renew(['nonsense'])).resolves.toMatchObject({
      lost: [{ lease: 'nonsense' }],
    })
    await expect(
      client.store.update({ lease: '1.1', key: 'k', token: 1, value: 'x' }),
    ).rejects.toThrowError(expect.objectContaining({ outcome: 'refused' }))
    expect(store.count('update')).toBe(1)
  })

  it('exists for each method of a store, with its answer', async () => {
    const { client, inner } = open()
    const { store } = client
    const granted = await store.grant({ holder: 'me', ttl: 60_000 })
    const lease = granted.outcome === 'granted' ? granted.lease : ''
    const claimed = await store.claim({ lease, claims: [{ key: 'a' }, { key: 'b' }] })
    const token = claimed.outcome === 'claimed' ? claimed.token : 0
    expect(claimed).toMatchObject({ outcome: 'claimed', holds: true })
    await store.update({ lease, key: 'a', token, value: 'x' })
    expect((await inner.read({ key: 'a' })).claims[0]?.value).toBe('x')
    expect(await store.release({ lease, keys: ['a'], token })).toHaveProperty('revision')
    expect((await store.read({ prefix: '' })).keys.map(({ key }) => key)).toEqual(['b'])
    expect(await store.renew([lease])).toMatchObject({ lost: [] })
    expect(await store.revoke({ target: { lease } })).toHaveProperty('revision')
    expect((await inner.read({ leases: true })).leases).toEqual([])
  })

  it('leaves a lease that outlives its client', async () => {
    const { inner, client } = open()
    await client.store.grant({ holder: 'me', ttl: 60_000, claims: [{ key: 'k' }] })
    await client.close()
    expect((await inner.read({ key: 'k' })).count).toBe(1)
    await expect(client.store.read({ key: 'k' })).rejects.toThrowError(
      expect.objectContaining({ code: 'closed' }),
    )
  })
})
