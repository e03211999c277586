import type { Figure, Peer } from '../../../measure/compare.js'
import { atMost, type Goal, percentile } from '../../../measure/rows.js'
import type { Expirer } from './expirers.js'

const OTHERS = 1000
const OTHERS_TTL = 10_000
/** Renewals of other leases every few milliseconds; each lease is renewed three times per ttl. */
const BEAT = 3
const BEAT_MS = 10
/** Renewals are measured from this long before the deadline until at least this long after it. */
const WATCH_MS = 500

const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

interface Beats {
  readonly latencies: number[]
  stop(): Promise<void>
}

/** Renews the other leases in turn. The time counts from when a renewal was due. */
function beat(expirer: Expirer, lost: Set<number>): Beats {
  const beats = { latencies: [] as number[], stop: async () => {} }
  let stopped = false
  let next = 0
  const once = async (due: number) => {
    const number = next++ % OTHERS
    const isThere = await expirer.renew('steady/', number)
    beats.latencies.push(performance.now() - due)
    if (!isThere) lost.add(number)
  }
  const loop = async () => {
    const answers: Promise<void>[] = []
    for (let due = performance.now(); !stopped; due += BEAT_MS) {
      await rest(Math.max(0, due - performance.now()))
      for (let at = 0; at < BEAT; at++) answers.push(once(due))
    }
    await Promise.all(answers)
  }
  const looped = loop()
  beats.stop = () => {
    stopped = true
    return looped
  }
  return beats
}

/** Leases that end at the same time, as far as the engine can. Returns when the last one ends. */
async function fillStorm(expirer: Expirer, prefix: string, count: number): Promise<number> {
  const { step } = expirer
  const at = performance.now() + (expirer.lead * count) / 10_000
  let last = at
  await expirer.fill(prefix, count, () => {
    const now = performance.now()
    const ttl = Math.max(step, Math.ceil((at - now) / step) * step)
    last = Math.max(last, now + ttl)
    return ttl
  })
  return last
}

/** A number of leases that end at the same time; `stormFigures` are the results of a run. */
export function stormOf(expirer: Expirer, count: number): Peer {
  let storms = 0
  const run = async () => {
    const prefix = `storm-${count}-${++storms}/`
    await expirer.fill('steady/', OTHERS, OTHERS_TTL)
    const lost = new Set<number>()
    const before = beat(expirer, lost)
    const due = await fillStorm(expirer, prefix, count)
    await rest(due - WATCH_MS - performance.now())
    await before.stop()
    const during = beat(expirer, lost)
    await rest(due - performance.now())
    while ((await expirer.left(prefix)) > 0) await rest(5)
    const gone = performance.now()
    await rest(due + WATCH_MS - performance.now())
    await during.stop()
    return { values: [gone - due, percentile(during.latencies, 0.99), lost.size] }
  }
  return { name: expirer.name, run }
}

export function stormFigures(count: number, goal?: Goal): readonly Figure[] {
  const name = `${count.toLocaleString('en')} leases with one deadline`
  return [
    { name: `${name}: until all are gone`, unit: 'ms', better: 'less', goal },
    { name: `${name}: renewals of others meanwhile, p99`, unit: 'ms', better: 'less' },
    { name: `${name}: others that were lost`, unit: 'leases', better: 'less', goal: atMost(0) },
  ]
}
