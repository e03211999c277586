import { describe, expect, it } from 'vitest'
import type { Registration } from '../../../../src/index.ts'
import { ids, MINUTE, scene } from './watch-scene.ts'

describe('the brake of a watch', () => {
  it.each([
    [19, 2],
    [20, 3],
  ])(
    'of %i that vanish removes the first %i at once: a share of the healthy ones',
    async (count, gone) => {
      const { clock, farAway, register, watching } = await scene()
      const far = await farAway()
      for (let at = 0; at < count; at++) {
        await far.registry.register('s', { id: `i${at}`, ttl: '10s' })
      }
      for (let at = 0; at < 10; at++) await (await register(`sick${at}`)).report('critical')
      const { watch } = await watching()
      far.link.freeze()
      await clock.advance(15_000)
      expect(watch.all.filter(({ status }) => status === 'lapsed')).toHaveLength(count - gone)
    },
  )
})

describe('an instance that lapses with many others', () => {
  async function lapsing(options = {}) {
    const { store, clock, leasehold, farAway, watching, write } = await scene()
    const far = await farAway()
    const all: Registration[] = []
    for (let at = 0; at < 6; at++) {
      all.push(await far.registry.register('s', { id: `i${at}`, ttl: '10s' }))
    }
    const events: unknown[] = []
    leasehold.on('recipe-event', (reported) => events.push(reported))
    const { watch, changes } = await watching(options)
    far.link.freeze()
    await clock.advance(15_000)
    // Two are removed as usual. The store decides which: all six ended at the same time.
    const held = watch.all.map(({ id }) => id)
    expect(held).toHaveLength(4)
    const tokenOf = (id: string) => all.find((one) => one.id === id)!.token
    return { store, clock, leasehold, watch, changes, held, tokenOf, events, write }
  }

  it('is shown as lapsed on request, and leaves with the reason of its end', async () => {
    const { clock, watch, changes, events, held, tokenOf } = await lapsing({ status: 'any' })
    expect(changes.filter((change) => / left passing expired$/.test(change))).toHaveLength(2)
    for (const id of held) expect(changes).toContain(`${id} changed passing lapsed`)
    expect(changes.splice(0)).toHaveLength(6)
    expect(watch.instances[0]).toMatchObject({ note: 'its lease has ended (expired)' })
    expect(events).toHaveLength(4)
    for (const id of held) {
      expect(events).toContainEqual(
        expect.objectContaining({
          ...{ recipe: 'registry', event: 'held-back', level: 'warn' },
          ...{ key: `services/s/${id}`, token: tokenOf(id) },
        }),
      )
    }
    await clock.advance(2 * MINUTE)
    expect(changes.sort()).toEqual(held.map((id) => `${id} left lapsed expired`))
    expect(watch.braking).toBe(false)
  })

  it('is reported to others as left, with the reason of its end', async () => {
    const { changes, held } = await lapsing()
    expect(changes).toContain(`${held[0]} left lapsed expired`)
  })

  it('is removed when its check fails, but not by an older result', async () => {
    const { clock, watch, changes, held, tokenOf, write } = await lapsing({ status: 'any' })
    const [dead, other, ...others] = held as [string, string]
    changes.splice(0)
    const result = (status: string, of: number | undefined) =>
      JSON.stringify({ status, note: '', of })
    await write(`health/s/${dead}`, result('warning', tokenOf(dead)))
    await write(`health/s/${other}`, result('critical', tokenOf(dead)))
    await clock.advance(10)
    expect(changes).toEqual([])
    await write(`health/s/${dead}`, result('critical', tokenOf(dead)))
    await clock.advance(10)
    expect(changes).toEqual([`${dead} left lapsed expired`])
    expect(ids(watch.all)).toEqual([other, ...others])
  })

  it('stays if its result vanishes; another with a failing check leaves', async () => {
    const { store, clock, watch, changes, held, tokenOf } = await lapsing({ status: 'any' })
    const [one, dead, other, last] = held as [string, string, string, string]
    changes.splice(0)
    const key = `health/s/${dead}`
    const value = (status: string, id: string) =>
      JSON.stringify({ status, note: '', of: tokenOf(id) })
    const write = async (ids: readonly string[]) => {
      const { lease } = (await store.grant({ holder: 'x', ttl: 60 * MINUTE })) as { lease: string }
      const claims = ids.map((id) => ({
        ...{ key: `health/s/${id}`, mode: 'shared' as const, value: value('warning', id) },
      }))
      const { token } = (await store.claim({ lease, claims })) as { token: number }
      return { lease, token }
    }
    const old = await write([dead])
    const newest = await write([one, dead, other])
    await store.update({ ...old, key, value: value('critical', dead) })
    await clock.advance(10)
    expect(changes).toEqual([])
    await store.revoke({ target: { lease: newest.lease } })
    await clock.advance(10)
    expect(changes).toEqual([`${dead} left lapsed expired`])
    expect(ids(watch.all)).toEqual([one, other, last])
  })

  it.each(['the watch', 'its client'])('is not reported after %s was closed', async (what) => {
    const { clock, leasehold, watch, changes } = await lapsing({ status: 'any' })
    changes.splice(0)
    if (what === 'the watch') watch.close()
    else await leasehold.close()
    await clock.advance(5 * MINUTE)
    expect(changes).toEqual([])
  })

  it('that was unhealthy is not delayed', async () => {
    const { clock, farAway, watching } = await scene()
    const far = await farAway()
    for (let at = 0; at < 6; at++) {
      const one = await far.registry.register('s', { id: `i${at}`, ttl: '10s' })
      await one.report('critical')
    }
    const { watch } = await watching({ status: 'any' })
    far.link.freeze()
    await clock.advance(15_000)
    expect(watch.all).toEqual([])
  })
})
