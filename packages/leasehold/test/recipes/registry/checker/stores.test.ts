import { describe, expect, it } from 'vitest'
import type { CheckerOptions, Leasehold, Probe } from '../../../../src/index.ts'
import { inNewScene, SCENES } from '../../scenes/scene.ts'

/** The unhealthy instances, for the probe. */
function ward() {
  const sick = new Set<string>()
  const probes: string[] = []
  const probe: Probe = async ({ host }) => {
    probes.push(host)
    return sick.has(host)
      ? { status: 'critical', note: 'it is sick' }
      : { status: 'passing', note: '' }
  }
  return { sick, probes, probe }
}

const FAST: CheckerOptions = { everyMin: '10ms', ttl: '2s', brake: false }
const CHECK = { http: '/health', every: '50ms', down: 2, up: 2 } as const

describe.each(SCENES)('health checks on $name', ({ make }) => {
  const inScene = inNewScene(make)
  const status = async (leasehold: Leasehold, id: string) => {
    const found = await leasehold.registry.find('s', { status: 'any' })
    return found.find((instance) => instance.id === id)?.status
  }

  it(
    'remove an instance from discovery despite its heartbeat, and bring it back',
    inScene(async (scene) => {
      const [a, b, c] = [await scene.open('a'), await scene.open('b'), await scene.open('c')]
      const { sick, probe } = ward()
      const me = await a.registry.register('s', { id: 'i', address: 'i:8080', check: CHECK })
      const own = me.token
      await using _ = b.registry.checker({ ...FAST, probe })
      const watch = c.registry.watch('s')
      await watch.ready
      sick.add('i')
      await scene.until('it has left', () => watch.instances.length === 0)
      expect(watch.all).toMatchObject([{ status: 'critical', note: 'it is sick', token: own }])
      expect(watch.pick()).toBeUndefined()
      expect(await c.registry.find('s')).toEqual([])
      expect(await status(c, 'i')).toBe('critical')
      expect(me.state).toBe('present')
      sick.clear()
      await scene.until('it is back', () => watch.instances.length === 1)
      expect(watch.instances).toMatchObject([{ status: 'passing', token: own }])
      watch.close()
    }),
  )

  it(
    'revoke the lease of an instance that asked for it, with the reason',
    inScene(async (scene) => {
      const [a, b] = [await scene.open('a'), await scene.open('b')]
      const { sick, probe } = ward()
      const check = { ...CHECK, onCritical: 'revoke' } as const
      const me = await a.registry.register('s', { id: 'i', address: 'i:8080', check })
      await using _ = b.registry.checker({ ...FAST, probe })
      sick.add('i')
      await scene.until('it has lost its lease', () => me.signal.aborted)
      expect(me.signal.reason).toMatchObject({
        code: 'lost',
        reason: 'revoked',
        by: 'b',
        why: 'its health check is critical: it is sick',
      })
      expect(await status(a, 'i')).toBeUndefined()
    }),
  )

  it(
    'are run by one checker at a time; if it dies, the next continues from its results',
    inScene(async (scene) => {
      const [a, b, c] = [await scene.open('a'), await scene.open('b'), await scene.open('c')]
      const [first, second] = [ward(), ward()]
      for (const { sick } of [first, second]) sick.add('i')
      const check = { ...CHECK, down: 1 }
      await a.registry.register('s', { id: 'i', address: 'i:8080', check })
      const one = b.registry.checker({ ...FAST, probe: first.probe })
      await scene.until('the first is on duty', () => one.active)
      const two = c.registry.checker({ ...FAST, probe: second.probe })
      await scene.until('it is critical', async () => (await status(a, 'i')) === 'critical')
      expect(two.active).toBe(false)
      expect(second.probes).toEqual([])
      const seen: unknown[] = []
      const watch = a.registry.watch('s', { status: 'any' })
      await watch.ready
      watch.on('changed', ({ instance }) => seen.push(instance.status))
      scene.kill(b)
      await scene.until('the second is on duty', () => two.active)
      const probes = first.probes.length
      await scene.until('it looks', () => second.probes.length > 0)
      await scene.pass(200)
      expect(first.probes.length).toBe(probes)
      expect(await status(a, 'i')).toBe('critical')
      // It never looked healthy.
      expect(seen).toEqual([])
      watch.close()
      await two.close()
      void one.close()
    }),
  )

  it(
    'by ttl: an instance that stops reporting is critical until it reports again',
    inScene(async (scene) => {
      const [a, b] = [await scene.open('a'), await scene.open('b')]
      const me = await a.registry.register('s', { id: 'i', check: { ttl: '300ms' } })
      await using checker = b.registry.checker({ ...FAST, probe: ward().probe })
      await scene.until('it is on duty', () => checker.active)
      for (let i = 0; i < 4; i++) {
        await me.report('passing')
        await scene.pass(120)
      }
      expect(await status(b, 'i')).toBe('passing')
      await scene.until('it is critical', async () => (await status(b, 'i')) === 'critical')
      await me.report('passing', 'here I am')
      await scene.until('it is passing', async () => (await status(b, 'i')) === 'passing')
    }),
  )
})
