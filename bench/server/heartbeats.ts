/**
 * Many clients in one process, each with a connection, a lease and a heartbeat of its own. Says
 * `ready` when all are connected, and `late` with how many renewals failed when it is told to end.
 */
import { remoteStore } from 'leasehold/remote'

const [url, count, every] = process.argv.slice(2) as [string, string, string]
const clients = Number(count)
const period = Number(every)
let failed = 0

async function client(): Promise<() => void> {
  const store = await remoteStore(url, { timeout: '60s' })
  const granted = await store.grant({ holder: 'bench', ttl: 600_000 })
  if (granted.outcome !== 'granted') throw new Error('not granted')
  const { lease } = granted
  return () => {
    store.renew([lease]).then(
      ({ lost }) => {
        failed += lost.length
      },
      () => {
        failed++
      },
    )
  }
}

const beats: (() => void)[] = []
while (beats.length < clients) {
  const some = Math.min(50, clients - beats.length)
  beats.push(...(await Promise.all(Array.from({ length: some }, client))))
}
// Spread over the period, as those of clients that were not started together are.
for (const [number, beat] of beats.entries()) {
  setTimeout(() => setInterval(beat, period), (number / clients) * period)
}
process.send?.('ready')
process.on('message', () => {
  process.send?.(failed)
  process.disconnect()
  process.exit()
})
