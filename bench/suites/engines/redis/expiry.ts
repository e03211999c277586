/**
 * The time from the deadline of a vanished holder until the waiter is notified that it holds,
 * beside 10,000 live leases that their own process renews. The deadline counts from the moment the
 * grant was sent, so the result is an upper bound.
 */
import { Redis } from 'ioredis'
import type { Granted, LeaseStore } from 'leasehold/port'
import { redisStore } from 'leasehold/redis'
import { startRedis } from '../../../engines/start.js'
import { atMost, percentile, type Row, row } from '../../../measure/rows.js'

const OTHERS = 10_000
const SAMPLES = 100
const EVERY_MS = 20
const TTL = 1000
const ROUNDS = 5

const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** One holder vanishes with a key: how late does the next waiter get it? */
async function sample(vanishing: LeaseStore, waiting: LeaseStore, key: string): Promise<number> {
  const claims = [{ key }]
  const heir = (await waiting.grant({ holder: 'heir', ttl: 60_000 })) as Granted
  const due = performance.now() + TTL
  await vanishing.grant({ holder: 'gone', ttl: TTL, claims })
  const notified = new Promise<number>((resolve) => {
    waiting.watch({ lease: heir.lease }, ({ type }) => {
      if (type === 'holds') resolve(performance.now())
    })
  })
  await waiting.claim({ lease: heir.lease, claims })
  const late = (await notified) - due
  await waiting.revoke({ target: { lease: heir.lease } })
  return late
}

const rows: Row[] = []
const engine = await startRedis(false)
if (engine) {
  const clients = Array.from({ length: 3 }, () => new Redis({ port: engine.port }))
  const [others, vanishing, waiting] = await Promise.all(clients.map((one) => redisStore(one)))
  const grants = Array.from({ length: OTHERS }, (_, at) =>
    others!.grant({ holder: 'other', ttl: 10_000, claims: [{ key: `others/${at}` }] }),
  )
  const leases = (await Promise.all(grants)).map((answer) => (answer as Granted).lease)
  const heartbeat = setInterval(() => void others!.renew(leases), 4000)
  const [middle, worst]: [number[], number[]] = [[], []]
  for (let round = 0; round < ROUNDS; round++) {
    process.stderr.write(`  expiry: round ${round + 1} of ${ROUNDS}\n`)
    const samples: Promise<number>[] = []
    while (samples.length < SAMPLES) {
      samples.push(sample(vanishing!, waiting!, `key/${round}/${samples.length}`))
      await rest(EVERY_MS)
    }
    const lags = await Promise.all(samples)
    middle.push(percentile(lags, 0.5))
    worst.push(percentile(lags, 0.99))
  }
  clearInterval(heartbeat)
  const what = `a vanished holder's key, beside ${OTHERS.toLocaleString('en')} leases: how late`
  rows.push(row(`${what}, p50`, 'ms', middle), row(`${what}, p99`, 'ms', worst, atMost(50)))
  await Promise.all([others, vanishing, waiting].map((store) => store!.close()))
  for (const client of clients) client.disconnect()
  await engine.end()
}
console.log(JSON.stringify(rows))
