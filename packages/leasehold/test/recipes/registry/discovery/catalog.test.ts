import { describe, expect, it } from 'vitest'
import { ids, MINUTE, scene } from './watch-scene.ts'

async function catalogScene() {
  const all = await scene()
  const catalog = all.registry.watchAll()
  const changes: string[] = []
  catalog.on('joined', ({ instance }) => changes.push(`+${instance.service}/${instance.id}`))
  catalog.on('changed', ({ instance }) => changes.push(`${instance.service}/${instance.status}`))
  catalog.on('left', ({ instance }) => changes.push(`-${instance.service}/${instance.id}`))
  const settle = async () => {
    await all.clock.advance(10)
    return changes.splice(0)
  }
  return { ...all, catalog, settle }
}

describe('a catalog', () => {
  it('shows the instances of all services, those registered before it and after', async () => {
    const { clock, registry } = await scene()
    await registry.register('mail', { id: 'm1' })
    const catalog = registry.watchAll()
    await clock.advance(10)
    await catalog.ready
    expect(catalog.services).toEqual(['mail'])
    await registry.register('web', { id: 'w1' })
    await clock.advance(10)
    expect(catalog.services).toEqual(['mail', 'web'])
    expect(ids(catalog.discovery('web')!.instances)).toEqual(['w1'])
    expect(catalog.live).toBe(true)
    expect(catalog.age()).toBe(0)
  })

  it('reports changes of status, and forgets a service without instances', async () => {
    const { registry, catalog, settle } = await catalogScene()
    const mail = await registry.register('mail', { id: 'm1' })
    expect(await settle()).toEqual(['+mail/m1'])
    await mail.report('critical')
    expect(await settle()).toEqual(['mail/critical'])
    await mail.release()
    expect(await settle()).toEqual(['-mail/m1'])
    expect(catalog.services).toEqual([])
    expect(catalog.discovery('mail')).toBeUndefined()
  })

  it('applies the result of a health check to the right service', async () => {
    const { registry, write, catalog, settle } = await catalogScene()
    const { token } = await registry.register('mail', { id: 'i' })
    await registry.register('web', { id: 'i' })
    await write('health/mail/i', JSON.stringify({ status: 'critical', note: '', of: token }))
    await settle()
    expect(catalog.discovery('mail')!.instances[0]!.status).toBe('critical')
    expect(catalog.discovery('web')!.instances[0]!.status).toBe('passing')
  })

  it('brakes each service by itself, and lets go of what the brake held', async () => {
    const { clock, farAway, register, catalog, settle } = await catalogScene()
    const far = await farAway()
    for (let at = 0; at < 6; at++) {
      await far.registry.register('far', { id: `i${at}`, ttl: '10s' })
      await register(`near${at}`)
    }
    await settle()
    far.link.freeze()
    await clock.advance(15_000)
    const held = catalog.discovery('far')!
    expect(held.instances.map(({ status }) => status)).toEqual(Array(4).fill('lapsed'))
    expect(held.braking).toBe(true)
    expect(catalog.discovery('s')!.braking).toBe(false)
    await clock.advance(2 * MINUTE)
    expect(catalog.services).toEqual(['s'])
    expect(catalog.discovery('far')).toBeUndefined()
  })

  it('ignores entries that cannot be read, and keys that are no entries', async () => {
    const { write, catalog, settle } = await catalogScene()
    await write('services/mail/m1', 'not JSON')
    await write('services/mail', '{}')
    await write('services/mail/m1/more', '{}')
    expect(await settle()).toEqual([])
    expect(catalog.services).toEqual([])
  })

  it('refuses an invalid brake at once', async () => {
    const { registry } = await scene()
    expect(() => registry.watchAll({ brake: { share: 2 } })).toThrow(/brake\.share is 2/)
    expect(() => registry.watchAll({ brakes: false } as never)).toThrow(/brakes/)
  })

  it('reports nothing after it was closed', async () => {
    const { registry, catalog, settle } = await catalogScene()
    await settle()
    catalog.close()
    await registry.register('mail', { id: 'm1' })
    expect(await settle()).toEqual([])
    expect(catalog.services).toEqual([])
  })
})
