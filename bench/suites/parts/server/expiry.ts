/**
 * The time from the deadline of a lease until the next waiter is notified over the network that it
 * holds. The deadline is the time of sending the grant plus the ttl, so the result includes the
 * network. For comparison: how late a bare timer is in the measuring process.
 */
import type { LeaseStore } from 'leasehold/port'
import { remoteStore } from 'leasehold/remote'
import { atMost, percentile, type Row, row } from '../../../measure/rows.js'
import { startServer } from '../remote/processes.js'

const SAMPLES = 1500
const EVERY_MS = 4

const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** One key expires: how late is the next waiter notified? */
async function lagOf(holder: LeaseStore, waiter: LeaseStore, next: string, number: number) {
  const key = `lag/${number}`
  const ttl = 1000 + (number % 97)
  const sent = performance.now()
  await holder.grant({ holder: 'gone', ttl, claims: [{ key }] })
  const claimed = await waiter.claim({ lease: next, claims: [{ key }] })
  if (claimed.outcome !== 'claimed' || claimed.holds) throw new Error('there is no line')
  const heard = await new Promise<number>((resolve) => {
    waiting.set(claimed.token, () => resolve(performance.now()))
  })
  await waiter.release({ lease: next, keys: [key], token: claimed.token })
  return heard - (sent + ttl)
}

const waiting = new Map<number, () => void>()

async function lags(holder: LeaseStore, waiter: LeaseStore): Promise<number[]> {
  const granted = await waiter.grant({ holder: 'next', ttl: 600_000 })
  if (granted.outcome !== 'granted') throw new Error('not granted')
  const { lease } = granted
  waiter.watch({ lease }, (notice) => {
    if (notice.type === 'holds') waiting.get(notice.token)?.()
  })
  const all: Promise<number>[] = []
  for (let number = 0; number < SAMPLES; number++) {
    all.push(lagOf(holder, waiter, lease, number))
    await rest(EVERY_MS)
  }
  return Promise.all(all)
}

/** How late timers of the same length are in an idle process. */
async function timerLags(): Promise<number[]> {
  const all: Promise<number>[] = []
  for (let number = 0; number < SAMPLES; number++) {
    const ttl = 1000 + (number % 97)
    const sent = performance.now()
    all.push(rest(ttl).then(() => performance.now() - (sent + ttl)))
    await rest(EVERY_MS)
  }
  return Promise.all(all)
}

const rows: Row[] = []
for (const kind of ['memory', 'file'] as const) {
  const server = await startServer(kind)
  const [holder, waiter] = await Promise.all([remoteStore(server.url), remoteStore(server.url)])
  const late = await lags(holder, waiter)
  const what = `expiry until the next waiter is notified, ${kind}`
  rows.push(row(`${what}, p50`, 'ms', [percentile(late, 0.5)]))
  rows.push(row(`${what}, p99`, 'ms', [percentile(late, 0.99)], atMost(10)))
  await Promise.all([holder.close(), waiter.close()])
  await server.end()
}
const bare = await timerLags()
rows.push(row('beside it: a bare timer, p50', 'ms', [percentile(bare, 0.5)]))
rows.push(row('beside it: a bare timer, p99', 'ms', [percentile(bare, 0.99)]))
console.log(JSON.stringify(rows))
