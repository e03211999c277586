/**
 * The time from a lease's deadline until the watchers were notified that its key is free, beside
 * many live leases. The deadline counts from the moment the request was sent. The ttl is 2 s, the
 * minimum of etcd. A watcher without a notification after 4 s counts as 4 s.
 */
import { compareFigures, type Peer } from '../../../measure/compare.js'
import { percentile, type Row } from '../../../measure/rows.js'
import { type Expirer, etcdExpirer, ourExpirer, redisExpirer } from './expirers.js'

const SAMPLES = 50
const EVERY_MS = 20
const TTL = 2000
const GIVE_UP_MS = 4000
const LONG = 3_600_000

const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

async function candidate(expirer: Expirer): Promise<Peer> {
  const waiting = new Map<string, () => void>()
  await expirer.watch((key) => waiting.get(key)?.())
  let keys = 0
  const sample = async () => {
    const key = `lag/${++keys}`
    const due = performance.now() + TTL
    const heard = new Promise<void>((resolve) => waiting.set(key, resolve))
    await expirer.grant(key, TTL)
    await Promise.race([heard, rest(due + GIVE_UP_MS - performance.now())])
    waiting.delete(key)
    return performance.now() - due
  }
  const run = async () => {
    const samples: Promise<number>[] = []
    while (samples.length < SAMPLES) {
      samples.push(sample())
      await rest(EVERY_MS)
    }
    const lags = await Promise.all(samples)
    return { values: [percentile(lags, 0.5), Math.max(...lags)] }
  }
  return { name: expirer.name, run }
}

const expirers = [await ourExpirer(), await redisExpirer(), await etcdExpirer()]
const [ours, ...peers] = await Promise.all(expirers.map((one) => one && candidate(one)))
const rows: Row[] = []
let alive = 0
for (const others of [1000, 100_000]) {
  const name = `expiry beside ${others.toLocaleString('en')} leases`
  process.stderr.write(`  ${name}: filling\n`)
  for (const expirer of expirers) await expirer?.fill(`others-${others}/`, others - alive, LONG)
  alive = others
  const figures = [
    { name: `${name}: how late, counted up to 4 s, p50`, unit: 'ms', better: 'less' },
    { name: `${name}: how late, counted up to 4 s, worst of 50`, unit: 'ms', better: 'less' },
  ] as const
  // They mostly wait, so they do not disturb each other.
  rows.push(
    ...(await compareFigures({ name, figures, ours: ours!, peers, together: true, warmUp: false })),
  )
}
await Promise.all(expirers.map((one) => one?.end()))
console.log(JSON.stringify(rows))
