/** Durable claims and releases, against the limit of the disk. */
import {
  closeSync,
  constants,
  fdatasyncSync,
  mkdtempSync,
  openSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileStore } from 'leasehold/file'
import { atLeast, perSecondAsync, rounds, row } from '../../../measure/rows.js'

const IN_FLIGHT = 64
const PAIRS = 30_000
/** The mean size of a claim and a release in the log. */
const PAIR_BYTES = 100
const ROUNDS = 7

const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'))
const store = await fileStore(join(folder, 'store'))
const granted = await store.grant({ holder: 'bench', ttl: 60_000 })
if (granted.outcome !== 'granted') throw new Error('not granted')
const { lease } = granted

function pairs(): Promise<number> {
  return perSecondAsync(PAIRS, () =>
    Promise.all(
      Array.from({ length: IN_FLIGHT }, async (_, worker) => {
        for (let i = 0; i < PAIRS / IN_FLIGHT; i++) {
          const key = `jobs/${worker}/${i % 100}`
          const claimed = await store.claim({ lease, claims: [{ key }] })
          if (claimed.outcome !== 'claimed') throw new Error('not claimed')
          await store.release({ lease, keys: [key], token: claimed.token })
        }
      }),
    ),
  )
}

/** The same changes in batches of 64, each made durable by one fdatasync, without other work. */
function raw(name: string, prepared: boolean): number {
  const bytes = Buffer.alloc((IN_FLIGHT * PAIR_BYTES) / 2, 1)
  const writes = Math.ceil((PAIRS * 2) / IN_FLIGHT)
  const path = join(folder, name)
  if (prepared) {
    const file = openSync(path, 'w')
    writeSync(file, Buffer.alloc(writes * bytes.length))
    fdatasyncSync(file)
    closeSync(file)
  }
  const file = openSync(path, prepared ? constants.O_RDWR : 'w')
  const start = performance.now()
  for (let write = 0; write < writes; write++) {
    writeSync(file, bytes, 0, bytes.length, write * bytes.length)
    fdatasyncSync(file)
  }
  const took = performance.now() - start
  closeSync(file)
  rmSync(path)
  return (PAIRS / took) * 1000
}

await pairs()
const ours: number[] = []
const appended: number[] = []
const overwritten: number[] = []
// Interleaved, because the speed of a disk varies over time.
await rounds(ROUNDS, async () => {
  ours.push(await pairs())
  appended.push(raw('appended', false))
  overwritten.push(raw('prepared', true))
  return 0
})
await store.close()
rmSync(folder, { recursive: true })
const ratios = (limits: readonly number[]) => ours.map((value, index) => value / limits[index]!)
console.log(
  JSON.stringify([
    row('durable claim + release, 64 in flight', 'pairs/s', ours),
    row('limit: append and fdatasync, once for 64 changes', 'pairs/s', appended),
    row('limit: overwrite and fdatasync, once for 64 changes', 'pairs/s', overwritten),
    row('durable pairs against append and fdatasync', 'x', ratios(appended), atLeast(0.5)),
    row('durable pairs against overwrite and fdatasync', 'x', ratios(overwritten), atLeast(0.5)),
  ]),
)
