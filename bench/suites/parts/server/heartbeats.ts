/**
 * Many clients in one process, each with its own connection and heartbeat: the renewal of a lease,
 * or with `echo` a frame of the same length that the server only sends back. Reports `ready` when
 * all are connected, and the number of failed heartbeats at the end.
 */
import { once } from 'node:events'
import { remoteStore } from 'leasehold/remote'
import { WebSocket } from 'ws'

const [url, count, every, kind] = process.argv.slice(2) as [string, string, string, string?]
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

async function echo(): Promise<() => void> {
  const socket = new WebSocket(url.replace('http', 'ws'), { perMessageDeflate: false })
  await once(socket, 'open')
  return () => socket.send('[[12,"renew",["0.1234567"]]]')
}

const beats: (() => void)[] = []
while (beats.length < clients) {
  const some = Math.min(50, clients - beats.length)
  beats.push(...(await Promise.all(Array.from({ length: some }, kind === 'echo' ? echo : client))))
}
// Spread over the period, because real clients do not start together.
for (const [number, beat] of beats.entries()) {
  setTimeout(() => setInterval(beat, period), (number / clients) * period)
}
process.send?.('ready')
process.on('message', () => {
  process.send?.(failed)
  process.disconnect()
  process.exit()
})
