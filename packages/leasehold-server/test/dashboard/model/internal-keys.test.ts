import { Leasehold } from 'leasehold'
import { memoryStore } from 'leasehold/memory'
import { describe, expect, it } from 'vitest'
import { internalKey } from '../../../dashboard/model/internal-keys.ts'

describe('internal keys', () => {
  it('are the keys that the recipes write, each below what it belongs to', async () => {
    const store = memoryStore()
    const leasehold = await Leasehold.open(store, { holder: 'ada' })
    await leasehold.lock('jobs/nightly')
    await leasehold.election('a/b').campaign()
    const pool = leasehold.pool('gpu', { resources: [{ name: 'g0' }] })
    await (await pool.take({ tenant: 't', kind: 'train' })).release()
    await pool.take({ tenant: 't', kind: 'train', ttl: '1m' })
    const node = await leasehold.registry.node('m-1')
    await node.register('web', { id: 'i-1' })
    const session = await leasehold.sessions('shop').create({ user: 'eve@x', data: {} })
    await leasehold.once('import/2026', async () => 1)
    await leasehold.cache('pages').set('home', 'x')
    const { keys } = await store.read({ prefix: '', limit: 1000 })
    const found = keys.map(({ key }) => [key, internalKey(key)?.path, internalKey(key)?.owner])
    const ref = keys.find(({ key }) => key.startsWith('session/shop/id/'))!.key.slice(16)
    expect(found.filter(([, path]) => path === undefined)).toEqual([
      ['jobs/nightly', undefined, undefined],
    ])
    expect(found).toEqual(
      expect.arrayContaining([
        ['cache/pages/home/value', 'cache/pages/home/value', 'home in cache pages'],
        ['election/a/b/line', 'election/a/b/line', 'election a/b'],
        ['nodes/m-1', 'nodes/m-1', 'node m-1'],
        ['once/done/import/2026', 'once/import/2026/done', 'once import/2026'],
        ['pool/gpu/books', 'pool/gpu/books', 'pool gpu'],
        ['pool/gpu/definition', 'pool/gpu/definition', 'pool gpu'],
        ['pool/gpu/r/g0', 'pool/gpu/r/g0', 'pool gpu'],
        ['services/web/i-1', 'services/web/i-1', 'instance i-1 of web'],
        [`session/shop/id/${ref}`, `session/shop/id/${ref}`, 'sessions shop'],
        [`session/shop/user/eve%40x/${ref}`, `session/shop/id/${ref}/user`, 'sessions shop'],
      ]),
    )
    await session.end()
    await leasehold.close()
    await store.close()
  })

  it.each([
    ['health/web/i-1', 'services/web/i-1/health'],
    ['checkers/all', 'services/active checker'],
    ['checkers/of/web', 'services/web/active checker'],
    ['cron/nightly/position', 'cron/nightly/position'],
    ['cron/nightly/done/2026-01-01T00:00:00.000Z', 'cron/nightly/done/2026-01-01T00:00:00.000Z'],
    ['pool/gpu/notice/7', 'pool/gpu/notice/7'],
    ['cache/pages/home/load', 'cache/pages/home/load'],
    ['adaptive/train', 'adaptive/train'],
    ['once/run/x', 'once/x/run'],
    ['consul/session/7', 'consul/session/7'],
    ['consul/delay/web/leader', 'consul/delay/web/leader'],
    ['consul/ttl/service:web', 'consul/ttl/service:web'],
    ['consul/node-checks', 'consul/node-checks'],
    ['leasehold/access-tokens', 'leasehold/access-tokens'],
  ])('include %s', (key, path) => {
    expect(internalKey(key)?.path).toBe(path)
  })

  it.each([
    ...['election', 'election/x', 'pool/5', 'pool/x/other', 'services/x', 'services/a/b/c'],
    ...[
      'once/x',
      'cron/x',
      'cache/x',
      'session/x',
      'toString/x',
      'nodes/a/b',
      'jobs/line',
      'consul/kv/ttl/x',
    ],
  ])('do not include %s, which a user can name', (key) => {
    expect(internalKey(key)).toBeUndefined()
  })
})
