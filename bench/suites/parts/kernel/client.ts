/** How fast a user takes and releases locks through the client, on the memory store. */
import { Leasehold } from 'leasehold'
import { memoryStore } from 'leasehold/memory'
import { atLeast, perSecondAsync, rounds, row } from '../../../measure/rows.js'

const PAIRS = 400_000
const IN_FLIGHT = 64

const leasehold = await Leasehold.open(memoryStore())

function pairs(): Promise<number> {
  return perSecondAsync(PAIRS, () =>
    Promise.all(
      Array.from({ length: IN_FLIGHT }, async (_, worker) => {
        for (let i = 0; i < PAIRS / IN_FLIGHT; i++) {
          const lock = await leasehold.lock(`jobs/${worker}/${i % 100}`)
          await lock.release()
        }
      }),
    ),
  )
}

await pairs()
const measured = await rounds(5, pairs)
await leasehold.close()
console.log(
  JSON.stringify([
    row(
      'client lock + release on the memory store, 64 in flight',
      'pairs/s',
      measured,
      atLeast(300_000),
    ),
  ]),
)
