import { describe, expect, it } from 'vitest'
import { parseRight } from '../../src/access/index.ts'
import { parseEndpoint, visibleTo } from '../../src/gateways/registry-view/index.ts'
import { viewScene } from './view-scene.ts'

const MINUTE = 60_000
const count = (list: readonly unknown[] | undefined) => list?.length ?? 0

describe('the registry view', () => {
  it('shows what is registered, with where it listens, and forgets what is released', async () => {
    const { clock, open, register } = await viewScene()
    const view = await open()
    const web = await register('web', 'w1', { address: 'http://10.0.0.7:8080/base' })
    await clock.advance(10)
    expect(view.services).toEqual(['web'])
    expect(view.service('web')!.serving[0]).toMatchObject({
      id: 'w1',
      endpoint: { host: '10.0.0.7', family: 4, port: 8080, scheme: 'http' },
    })
    await web.release()
    await clock.advance(10)
    expect(view.services).toEqual([])
    expect(view.service('web')).toBeUndefined()
    await view.close()
  })

  it('serves passing and warning instances, and shows the others', async () => {
    const { clock, open, register } = await viewScene()
    const view = await open()
    await register('web', 'good')
    await (await register('web', 'slow')).report('warning')
    await (await register('web', 'bad')).report('critical')
    await (await register('web', 'away')).maintenance(true, 'new disks')
    await clock.advance(10)
    const { all, serving } = view.service('web')!
    expect(all.map(({ id }) => id)).toEqual(['away', 'bad', 'good', 'slow'])
    expect(serving.map(({ id }) => id)).toEqual(['good', 'slow'])
    await view.close()
  })

  it('reports all changes of one turn in one call, with a higher revision', async () => {
    const { clock, open, register } = await viewScene()
    const view = await open()
    const calls: string[][] = []
    const stop = view.onChange((changed) => calls.push([...changed].sort()))
    const before = view.revision
    await Promise.all([register('web', 'w1'), register('web', 'w2'), register('mail', 'm1')])
    await clock.advance(10)
    expect(calls.flat().sort()).toEqual(expect.arrayContaining(['mail', 'web']))
    expect(calls.length).toBeLessThan(3)
    expect(view.revision).toBeGreaterThan(before)
    // Two changes of one service are one call too.
    calls.length = 0
    await Promise.all([register('web', 'w4'), register('web', 'w5')])
    await clock.advance(10)
    expect(calls).toEqual([['web']])
    stop()
    const seen = calls.length
    await register('web', 'w3')
    await clock.advance(10)
    expect(calls).toHaveLength(seen)
    await view.close()
  })
})

describe('half of all instances gone at once', () => {
  it('leaves most of them in use for two minutes, and removes them then', async () => {
    const { clock, open, register, doomed } = await viewScene()
    const view = await open()
    for (let at = 0; at < 20; at++) await register('web', `alive-${at}`)
    const { die } = await doomed('web', 20)
    await clock.advance(10)
    expect(count(view.service('web')!.serving)).toBe(40)
    die()
    await clock.advance(10_000)
    // 15 % of 40 leave as usual. The brake holds back the other 14.
    const { serving } = view.service('web')!
    expect(serving.filter(({ status }) => status === 'passing')).toHaveLength(20)
    expect(serving.filter(({ status }) => status === 'lapsed')).toHaveLength(14)
    await clock.advance(2 * MINUTE - 5000)
    expect(count(view.service('web')!.serving)).toBe(34)
    await clock.advance(6000)
    expect(view.service('web')!.serving.map(({ status }) => status)).toEqual(
      Array(20).fill('passing'),
    )
    await view.close()
  })

  it('removes the first few at once, without the brake', async () => {
    const { clock, open, register, doomed } = await viewScene()
    const view = await open()
    for (let at = 0; at < 20; at++) await register('web', `alive-${at}`)
    const { die } = await doomed('web', 3)
    await clock.advance(10)
    die()
    await clock.advance(10_010)
    expect(count(view.service('web')!.all)).toBe(20)
    await view.close()
  })
})

describe('a view that is opened again', () => {
  it('is ready only when it knows everything, so no consumer sees half of a service', async () => {
    const { clock, link, open, register } = await viewScene()
    for (let at = 0; at < 40; at++) await register('web', `i-${at}`)
    const first = await open()
    // More changes than seconds until the next one is open.
    const flapping = await register('web', 'i-0-flaps')
    for (let at = 0; at < 100; at++) {
      await flapping.report(at % 2 === 0 ? 'critical' : 'passing')
      await clock.advance(10)
    }
    await flapping.release()
    await clock.advance(10)
    const { revision } = first
    await first.close()
    link.freeze()
    let isReady = false
    const opening = open().then((view) => {
      isReady = true
      return view
    })
    await clock.advance(1000)
    expect(isReady).toBe(false)
    link.thaw()
    await clock.advance(60_000)
    const second = await opening
    expect(count(second.service('web')!.serving)).toBe(40)
    expect(second.revision).toBeGreaterThan(revision)
    await second.close()
  })

  it('keeps what it knew while the store cannot be reached', async () => {
    const { clock, link, open, register } = await viewScene()
    await register('web', 'w1')
    const view = await open()
    link.freeze()
    await clock.advance(60_000)
    expect(count(view.service('web')?.serving)).toBe(1)
    link.thaw()
    await clock.advance(10_000)
    expect(count(view.service('web')?.serving)).toBe(1)
    await view.close()
  })
})

describe('the rights of a caller', () => {
  it('decide which instances it sees', async () => {
    const { open, register } = await viewScene()
    await register('web', 'w1')
    await register('web', 'x1')
    const view = await open()
    const seen = (...rights: string[]) =>
      visibleTo({ rights: rights.map(parseRight) }, view.service('web')!.all).map(({ id }) => id)
    expect(seen('read:services/')).toEqual(['w1', 'x1'])
    expect(seen('read:services/web/w')).toEqual(['w1'])
    expect(seen('claim,watch:services/')).toEqual([])
    expect(seen('read:locks/')).toEqual([])
    await view.close()
  })
})

describe('an address', () => {
  it.each([
    ['10.0.0.7:8080', { host: '10.0.0.7', family: 4, port: 8080 }],
    ['10.0.0.7', { host: '10.0.0.7', family: 4, port: undefined }],
    ['[::1]:80', { host: '::1', family: 6, port: 80 }],
    ['::1', { host: '::1', family: 6, port: undefined }],
    ['https://embed-3.example', { host: 'embed-3.example', family: 0, port: 443 }],
    ['http://user:secret@10.0.0.7/x', { host: '10.0.0.7', family: 4, port: 80 }],
    ['embed:9000', { host: 'embed', family: 0, port: 9000 }],
  ])('%s names a host', (address, endpoint) => {
    expect(parseEndpoint(address)).toMatchObject(endpoint)
  })

  it.each([
    undefined,
    '10.0.0.256:80',
    '1.2.3:80',
    '10.0.0.7:0',
    '10.0.0.7:65536',
    'fe80::1%eth0',
    '[nonsense]:80',
    'a b',
    '/var/run/socket',
    'unix:///run/x',
    `${'a'.repeat(64)}:80`,
    'a..b:80',
    ':80',
  ])('%s names none', (address) => {
    expect(parseEndpoint(address)).toBeUndefined()
  })
})
