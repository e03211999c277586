import { memoryStore } from 'leasehold/memory'
import { DEFAULT_LIMITS, type LeaseStore, systemClock } from 'leasehold/port'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Access, noAudit, parseRight } from '../../../src/access/index.ts'

const PREFIX = 'leasehold/tokens/'
let store: LeaseStore
let access: Access

beforeEach(async () => {
  store = memoryStore()
  access = await Access.open({ store, limits: DEFAULT_LIMITS, audit: noAudit, clock: systemClock })
})
afterEach(async () => {
  access.close()
  await store.close()
})

const create = (name: string, right: string) =>
  access.tokens.create({ name, rights: [parseRight(right)] })
const value = (right: string) =>
  JSON.stringify({ hash: 'h', rights: [right], quota: {}, createdAt: 0 })
const grant = (by: LeaseStore, name: string, text: string) =>
  by.grant({ holder: 'x', ttl: Infinity, claims: [{ key: PREFIX + name, value: text }] })
const refused = expect.objectContaining({
  code: 'forbidden',
  message: expect.stringMatching(/first: leasehold access-token create admin --right all:$/),
})

describe('over the network, on a server without access tokens', () => {
  it.each([
    ['a token without the right to administer', value('claim,read:jobs/')],
    ['a token that administers only some keys', value('admin:jobs/')],
    ['an entry that nobody can use', 'nonsense'],
  ])('the first entry cannot be %s', async (_, text) => {
    const { store: everybody } = access.admit({})
    await expect(grant(everybody, 'ci', text)).rejects.toEqual(refused)
    const lease = await everybody.grant({ holder: 'x', ttl: Infinity })
    if (lease.outcome !== 'granted') throw new Error('busy')
    const claims = [{ key: `${PREFIX}ci`, value: text }]
    await expect(everybody.claim({ lease: lease.lease, claims })).rejects.toEqual(refused)
    expect((await store.read({ prefix: PREFIX })).keys).toEqual([])
  })

  it.each(['all:', 'admin:', 'admin:leasehold/'])('the first token can have %s', async (right) => {
    const { store: everybody } = access.admit({})
    expect(await grant(everybody, 'admin', value(right))).toMatchObject({ outcome: 'granted' })
  })
})

describe('an administrator', () => {
  const admitted = async () => {
    const token = await create('admin', 'all:')
    await create('ci', 'claim:jobs/')
    return access.admit({ authorization: `Bearer ${token}` }).store
  }
  const leaseOf = async (name: string) =>
    (await store.read({ key: PREFIX + name })).claims[0]!.lease

  it('cannot remove the last administrator in any way', async () => {
    const own = await admitted()
    const lease = await leaseOf('admin')
    for (const target of [{ lease }, { key: `${PREFIX}admin` }, { prefix: `${PREFIX}adm` }]) {
      await expect(own.revoke({ target, why: 'test' })).rejects.toEqual(refused)
    }
    const { token } = (await store.read({ key: `${PREFIX}admin` })).claims[0]!
    const change = { lease, key: `${PREFIX}admin`, token, value: value('read:') }
    await expect(own.update(change)).rejects.toEqual(refused)
    expect(access.tokens.list()).toHaveLength(2)
  })

  it('can remove the others, itself after another was created, and all at once', async () => {
    const own = await admitted()
    await own.revoke({ target: { key: `${PREFIX}ci` }, why: 'test' })
    await grant(own, 'ci', value('read:'))
    await create('second', 'admin:')
    await own.revoke({ target: { lease: await leaseOf('admin') }, why: 'test' })
    await expect.poll(() => access.tokens.list().map(({ name }) => name)).not.toContain('admin')
    const { store: second } = access.admit({
      authorization: `Bearer ${await create('third', 'all:')}`,
    })
    await second.revoke({ target: { prefix: PREFIX }, why: 'test' })
    await expect.poll(() => access.tokens.isEmpty).toBe(true)
  })

  it('that has expired is none', async () => {
    await create('ci', 'claim:jobs/')
    expect(access.tokens.lacksAdministrator).toBe(true)
    const rights = [parseRight('all:')]
    const past = { name: 'old', rights, expiresAt: systemClock.now() - 1 }
    expect(await access.tokens.lockOut({ adds: past })).toMatch(/"old" has no right to administer/)
    expect(await access.tokens.lockOut({ adds: { name: 'new', rights } })).toBeUndefined()
  })
})
