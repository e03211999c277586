/**
 * Many leases with one deadline: how long after it all are gone, and what that does to renewals of
 * others meanwhile. etcd ends a thousand a second by design, so it is asked for the smaller storm only;
 * its ttl is in whole seconds, and counted is from the last deadline.
 */
import { contests, type Peer } from '../contest.js'
import { atMost, percentile, type Row } from '../rows.js'
import { type Expirer, etcdExpirer, ourExpirer, redisExpirer } from './engines.js'

const OTHERS = 1000
const OTHERS_TTL = 10_000
/** So many renewals of others every few milliseconds, which is each once in a third of its ttl. */
const BEAT = 3
const BEAT_MS = 10
/** Renewals are watched from so long before the deadline to at least so long after it. */
const WATCH_MS = 500

const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

interface Beats {
  readonly latencies: number[]
  stop(): Promise<void>
}

/** Renews the others in turn; each is timed from when it should have been sent. */
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

/** Leases that all end at one time, as far as the engine can; tells when the last of them does. */
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

async function contestant(expirer: Expirer, count: number): Promise<Peer> {
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

const rows: Row[] = []
for (const count of [10_000, 50_000]) {
  const expirers = [
    await ourExpirer(),
    await redisExpirer(),
    count === 10_000 ? await etcdExpirer() : undefined,
  ]
  const [ours, ...peers] = await Promise.all(expirers.map((one) => one && contestant(one, count)))
  const name = `${count.toLocaleString('en')} leases with one deadline`
  const figures = [
    { name: `${name}: until all are gone`, unit: 'ms', better: 'less' },
    { name: `${name}: renewals of others meanwhile, p99`, unit: 'ms', better: 'less' },
    { name: `${name}: others that were lost`, unit: 'leases', better: 'less', goal: atMost(0) },
  ] as const
  rows.push(...(await contests({ name, figures, ours: ours!, peers, warmUp: false })))
  await Promise.all(expirers.map((one) => one?.end()))
}
console.log(JSON.stringify(rows))
