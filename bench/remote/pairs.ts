/** Claims and releases over one connection, against frames of the same size that only come back. */
import type { LeaseStore } from 'leasehold/port'
import { remoteStore } from 'leasehold/remote'
import { perSecondAsync, type Row, rounds, row } from '../rows.js'
import { startEcho, startServer } from './processes.js'

const ROUNDS = 5
const PAIRS = 40_000
/** A claim and its release, as they travel. */
const MESSAGE = '[1234567,"claim","0.1234567",["jobs/12/34"],0,"AbCdEfGhIjKlMnOpQrStUv-123456"]'

async function leaseOn(store: LeaseStore): Promise<string> {
  const granted = await store.grant({ holder: 'bench', ttl: 600_000 })
  if (granted.outcome !== 'granted') throw new Error('not granted')
  return granted.lease
}

let requests = 0

function pairs(store: LeaseStore, lease: string, inFlight: number): Promise<number> {
  return perSecondAsync(PAIRS, () =>
    Promise.all(
      Array.from({ length: inFlight }, async (_, worker) => {
        for (let i = 0; i < PAIRS / inFlight; i++) {
          const key = `jobs/${worker}/${i % 100}`
          // With a request id, as our client sends it.
          const request = `AbCdEfGhIjKlMnOpQrStUv-${++requests}`
          const claimed = await store.claim({ lease, claims: [{ key }], request })
          if (claimed.outcome !== 'claimed') throw new Error('not claimed')
          await store.release({ lease, keys: [key], token: claimed.token })
        }
      }),
    ),
  )
}

const echo = await startEcho()

function echoed(inFlight: number): Promise<number> {
  const frame = `[${Array(inFlight).fill(MESSAGE).join(',')}]`
  const frames = Math.ceil((PAIRS * 2) / inFlight)
  return perSecondAsync(PAIRS, async () => {
    for (let i = 0; i < frames; i++) await echo.send(frame)
  })
}

const rows: Row[] = []
for (const kind of ['memory', 'file'] as const) {
  const server = await startServer(kind)
  const store = await remoteStore(server.url)
  const lease = await leaseOn(store)
  for (const inFlight of [64, 512]) {
    const ours: number[] = []
    const limit: number[] = []
    await pairs(store, lease, inFlight)
    await rounds(ROUNDS, async () => {
      ours.push(await pairs(store, lease, inFlight))
      limit.push(await echoed(inFlight))
      return 0
    })
    const ratios = ours.map((value, index) => value / limit[index]!)
    const what = `${kind}, ${inFlight} in flight`
    rows.push(row(`claim + release through the server, ${what}`, 'pairs/s', ours))
    rows.push(row(`limit: echo of frames of ${inFlight}`, 'pairs/s', limit))
    rows.push(row(`pairs against the echo, ${what}`, 'x', ratios))
  }
  await store.close()
  await server.end()
}
await echo.end()
console.log(JSON.stringify(rows))
