/**
 * The kernel with a thousand to ten million leases. Each run alternates with a kernel that has a
 * thousand, because the machine's speed varies more in a minute than most of these costs.
 */
import { Kernel } from 'leasehold/kernel'
import type { Run } from '../../../measure/compare.js'
import { atMost, type Row } from '../../../measure/rows.js'
import { batches, shuffle } from '../../../measure/seeded-random.js'
import { growthOf, pointOf } from './points.js'

const FEW = 1000
const SIZES = [FEW, 10_000, 100_000, 1_000_000, 10_000_000]
const RUN_MS = 100
const BATCH = 100
const NOW = 1000

class Subject {
  readonly #kernel = new Kernel()
  /** All of the first million, then every ninth: far more than the processor's caches can hold. */
  readonly #kept: string[] = []
  #beats: string[][] = []
  readonly #holder = this.#granted()
  #filled = 0
  #at = 0

  fill(size: number): void {
    for (; this.#filled < size; this.#filled++) {
      const lease = this.#granted()
      if (this.#filled < 1_000_000 || this.#filled % 9 === 0) this.#kept.push(lease)
    }
    // Heartbeats arrive in random order.
    this.#beats = batches(shuffle(this.#kept), BATCH)
  }

  readonly renew = (): Promise<Run> =>
    cost(() => {
      this.#kernel.renew(this.#beats[this.#at++ % this.#beats.length]!, NOW)
    }, BATCH)

  readonly claimAndRelease = (): Promise<Run> =>
    cost((number) => {
      const key = `jobs/${number % 1000}`
      const lease = this.#holder
      const claimed = this.#kernel.claim({ lease, claims: [{ key }] }, NOW)
      if (claimed.outcome !== 'claimed' || !claimed.holds) throw new Error('not held')
      this.#kernel.release({ lease, keys: [key], token: claimed.token }, NOW)
    })

  readonly grantAndRevoke = (): Promise<Run> =>
    cost((number) => {
      const lease = this.#granted([{ key: `runs/${number % 1000}` }])
      this.#kernel.revoke({ target: { lease } }, NOW)
    })

  #granted(claims?: readonly { readonly key: string }[]): string {
    const answer = this.#kernel.grant({ holder: 'bench', ttl: 3_600_000, claims }, NOW)
    if (answer.outcome !== 'granted') throw new Error(`not granted: ${JSON.stringify(answer)}`)
    return answer.lease
  }
}

/** Processor time of one operation in microseconds, over many repetitions without waits. */
async function cost(act: (number: number) => void, each = 1): Promise<Run> {
  const used = process.cpuUsage()
  const start = performance.now()
  let count = 0
  while (performance.now() - start < RUN_MS) for (let i = 0; i < 50; i++) act(count++)
  const { user, system } = process.cpuUsage(used)
  return { value: (user + system) / (count * each), count: count * each }
}

const CURVES = {
  'kernel: renew': 'renew',
  'kernel: claim + release': 'claimAndRelease',
  'kernel: grant with a key + revoke': 'grantAndRevoke',
} as const

const [few, many] = [new Subject(), new Subject()]
few.fill(FEW)
many.fill(FEW)
// Warm up first, because the first measurement would include the compilation.
for (let time = 0; time < 10; time++) {
  for (const act of Object.values(CURVES)) await few[act]()
}
const rows: Row[] = []
for (const leases of SIZES) {
  many.fill(leases)
  for (const [curve, act] of Object.entries(CURVES)) {
    const beside = { name: `${curve} beside ${FEW.toLocaleString('en')}`, run: few[act] }
    rows.push(...(await pointOf({ curve, leases, ours: many[act], peers: [beside] })))
  }
}
const million = rows.filter(({ point }) => point!.leases <= 1_000_000)
const goals = { 'kernel: renew': atMost(2) }
console.log(JSON.stringify([...rows, ...growthOf(million, goals), ...growthOf(rows)]))
