/**
 * A separate process that takes locks, holds them for a while, writes to the protected resource,
 * and reports every answer to its parent. It continues through every fault until it is stopped.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Leasehold, LeaseholdError, type LeaseStore, type Lock } from '../../src/index.ts'
import { SeededRandom } from '../../src/testing/sim/index.ts'
import type { MemberSpec, OpenStore, Report } from './crowd.ts'

const spec: MemberSpec = JSON.parse(process.argv[2]!)
const random = new SeededRandom(spec.seed)
const now = () => Number(process.hrtime.bigint()) / 1e6
const send = (report: Report) => void process.send!(report)
const OPEN_ATTEMPTS = 20
let leaving = false

process.on('message', () => {
  leaving = true
})
process.on('disconnect', () => process.exit())

const { openStore }: { openStore: OpenStore } = await import(spec.module)
const leasehold = await Leasehold.open(await opened(), { holder: spec.name })
send({ is: 'ready' })
while (!leaving) await once()
await leasehold.close()
send({ is: 'left' })
process.disconnect()

/** On a busy machine the first answer can take longer than the timeout of a store. */
async function opened(): Promise<LeaseStore> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await openStore(spec.argument, spec.number)
    } catch (error) {
      const isUnknown = error instanceof LeaseholdError && error.outcome === 'unknown'
      if (!isUnknown || attempt === OPEN_ATTEMPTS) throw error
    }
  }
}

async function once(): Promise<void> {
  const key = spec.keys[random.integer(0, spec.keys.length - 1)]!
  const requested = now()
  try {
    const lock = await leasehold.lock(key, { ttl: spec.ttl, grace: spec.grace, wait: spec.wait })
    await use(lock, requested)
  } catch (error) {
    if (!(error instanceof LeaseholdError)) {
      send({ is: 'fault', message: String((error as Error)?.stack ?? error) })
      throw error
    }
    send({ is: 'refused', key, code: error.code, message: error.message })
    await sleep(random.between(10, 50))
  }
}

async function use(lock: Lock, requested: number): Promise<void> {
  const { key, claimToken: token } = lock
  // Most holders are brief; some outlive several renewals.
  const time = random.next() < 0.1 ? random.between(1, 2) * spec.ttl : random.between(1, 40)
  const end = now() + time
  let first = true
  do {
    // Read before the look, so that a pause between the two cannot make the belief longer.
    const at = now()
    if (!lock.held) break
    const until = at + lock.remaining()
    send(
      first ? { is: 'held', key, token, requested, at, until } : { is: 'holds', key, token, until },
    )
    first = false
    send({ is: 'write', key, token })
    await sleep(Math.min(5, time))
  } while (now() < end && !leaving)
  // A lease that had ended before the first look was never reported as held.
  const wasReported = !first
  if (lock.state === 'lost') {
    const reason = String(lock.signal.reason)
    if (wasReported) send({ is: 'lost', key, token, at: now(), reason })
    return
  }
  if (wasReported) send({ is: 'releases', key, token, at: now() })
  await lock.release()
}
