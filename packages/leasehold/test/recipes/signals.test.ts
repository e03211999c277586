import { getEventListeners } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { Leasehold } from '../../src/index.ts'
import { SeededRandom, testStore } from '../../src/testing/index.ts'

/** More listeners than Node allows before it warns about a leak. */
const TIMES = 15

/**
 * What depends on a signal: its listeners, and signals made by `AbortSignal.any`, which Node 20
 * never forgets while the signal lives.
 */
function dependents(signal: AbortSignal): number {
  const symbols = Object.getOwnPropertySymbols(signal)
  const made = symbols.find(({ description }) => description === 'kDependantSignals')
  const { size = 0 } = (made && (signal as unknown as Record<symbol, Set<unknown>>)[made]) ?? {}
  return getEventListeners(signal, 'abort').length + size
}

/** Returns a function that lists the warnings since then. */
function listenToWarnings(): () => Promise<readonly string[]> {
  const warnings: string[] = []
  const onWarning = ({ name }: Error) => void warnings.push(name)
  process.on('warning', onWarning)
  return async () => {
    // Warnings arrive in a later turn.
    await new Promise((resolve) => setImmediate(resolve))
    process.off('warning', onWarning)
    return warnings
  }
}

describe('a long-lived signal', () => {
  it('keeps nothing of finished campaigns and sleeps', async () => {
    const { store, clock } = testStore()
    const leasehold = await Leasehold.open(store, { clock, random: new SeededRandom(3) })
    const { signal } = new AbortController()
    const election = leasehold.election('e')
    for (let time = 0; time < TIMES; time++) await (await election.campaign({ signal })).resign()
    expect(dependents(signal)).toBe(0)
    let terms = 0
    const leading = (async () => {
      for await (const _ of election.lead({ signal })) if (++terms === TIMES) return
    })()
    await clock.advance(TIMES * 10_000)
    await leading
    expect(terms).toBe(TIMES)
    expect(dependents(signal)).toBe(0)
    await leasehold.close()
  })

  it('keeps nothing of closed observations, also after a garbage collection', async () => {
    setFlagsFromString('--expose-gc')
    const collectGarbage = runInNewContext('gc') as () => void
    const { store, clock } = testStore()
    const leasehold = await Leasehold.open(store, { clock, random: new SeededRandom(3) })
    const { signal } = new AbortController()
    const observe = () => leasehold.election('e').observe({ signal })
    const observations = Array.from({ length: 5 }, observe)
    // Objects created in this turn are kept until its end.
    await new Promise((resolve) => setImmediate(resolve))
    collectGarbage()
    for (const observation of observations) observation.close()
    expect(dependents(signal)).toBe(0)
    await leasehold.close()
  })

  it('causes no warning when a checker was deactivated often', async () => {
    const { store, clock } = testStore()
    const leasehold = await Leasehold.open(store, { clock, random: new SeededRandom(3) })
    const warned = listenToWarnings()
    const checker = leasehold.registry.checker({
      probe: async () => ({ status: 'passing', note: '' }),
    })
    let activations = 0
    checker.on('active', () => activations++)
    while (activations < TIMES) {
      await clock.advance(5000)
      await store.revoke({ target: { key: checker.key }, why: 'test' })
    }
    await checker.close()
    await leasehold.close()
    expect(await warned()).toEqual([])
  })

  it('causes no warning when a client watches and waits for many things at once', async () => {
    const { store, clock } = testStore()
    const leasehold = await Leasehold.open(store, { clock, random: new SeededRandom(3) })
    const warned = listenToWarnings()
    const ended: string[] = []
    for (let time = 0; time < TIMES; time++) {
      leasehold.registry.watch(`service-${time}`)
      const observing = async () => {
        for await (const _ of leasehold.election(`election-${time}`).observe());
        ended.push('observation')
      }
      void observing()
    }
    await clock.advance(1000)
    await leasehold.close()
    await clock.advance(1000)
    expect(ended).toHaveLength(TIMES)
    expect(await warned()).toEqual([])
  })
})
