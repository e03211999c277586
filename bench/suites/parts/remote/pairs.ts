/** Claims and releases over one connection, against echoed frames of the same size. */
import type { LeaseStore } from 'leasehold/port'
import { remoteStore } from 'leasehold/remote'
import { compare } from '../../../measure/compare.js'
import { perSecondAsync, type Row } from '../../../measure/rows.js'
import { type Echo, startEcho, startServer } from './processes.js'

const PAIRS = 40_000
/** A claim and its release, as sent. */
const MESSAGE = '[1234567,"claim","0.1234567",["jobs/12/34"],0,"AbCdEfGhIjKlMnOpQrStUv-123456"]'

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

function echoed(echo: Echo, inFlight: number): Promise<number> {
  const frame = `[${Array(inFlight).fill(MESSAGE).join(',')}]`
  const frames = Math.ceil((PAIRS * 2) / inFlight)
  return perSecondAsync(PAIRS, async () => {
    for (let i = 0; i < frames; i++) await echo.send(frame)
  })
}

const rows: Row[] = []
const echo = await startEcho()
for (const kind of ['memory', 'file'] as const) {
  const server = await startServer(kind)
  const store = await remoteStore(server.url)
  const granted = await store.grant({ holder: 'bench', ttl: 600_000 })
  if (granted.outcome !== 'granted') throw new Error('not granted')
  const { lease } = granted
  for (const inFlight of [64, 512]) {
    const count = PAIRS
    rows.push(
      ...(await compare({
        name: `claim + release through the server, ${kind}, ${inFlight} in flight`,
        unit: 'pairs/s',
        better: 'more',
        ours: {
          name: kind,
          run: async () => ({ value: await pairs(store, lease, inFlight), count }),
          pids: [server.pid],
        },
        peers: [
          {
            name: `an echo of frames of ${inFlight}`,
            limit: true,
            run: async () => ({ value: await echoed(echo, inFlight), count }),
          },
        ],
      })),
    )
  }
  await store.close()
  await server.end()
}
await echo.end()
console.log(JSON.stringify(rows))
