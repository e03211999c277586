import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ChangeSink, Kernel } from '../../../../src/kernel/index.ts'
import { systemRandom } from '../../../../src/port/index.ts'
import { beginCheckpoints } from '../../../../src/stores/file/checkpoints.ts'
import { FileDurability } from '../../../../src/stores/file/file-durability.ts'
import { LogWriter } from '../../../../src/stores/file/log/log-writer.ts'
import {
  segmentName,
  segmentNumbers,
  snapshotName,
} from '../../../../src/stores/file/log/segment.ts'
import { SegmentSupply } from '../../../../src/stores/file/log/segment-supply.ts'
import { recover } from '../../../../src/stores/file/recovery.ts'
import { writeSnapshot } from '../../../../src/stores/file/snapshot/snapshot-writer.ts'
import { StillClock } from '../harness.ts'
import { MemoryDisk } from '../memory-disk.ts'

const SEGMENT_BYTES = 4096
const LIMITS = { events: 256, history: 512, idleKeys: 512, requests: 512, ended: 512 }

/** A clock on which other work runs at every yield. */
class BusyClock extends StillClock {
  meanwhile: () => void = () => {}

  override defer(run: () => void): void {
    super.defer(() => {
      this.meanwhile()
      run()
    })
  }
}

async function open(disk: MemoryDisk, clock: BusyClock) {
  const durability = new FileDurability(clock)
  const { kernel, recovered } = await recover(disk, systemRandom, SEGMENT_BYTES, (revision) => {
    return new Kernel({ limits: LIMITS, revision, changeSink: durability.changeSink })
  })
  const { storeId, end, lastTime } = recovered
  const shift = lastTime === -Infinity ? 0 : clock.now() - lastTime
  const { revision } = kernel
  const checkpoints = await beginCheckpoints(disk, clock, recovered, revision, SEGMENT_BYTES)
  const lastSegment = segmentNumbers(await disk.list()).at(-1)!
  kernel.finishReplay(clock.now(), clock.now() - shift)
  const supply = new SegmentSupply(disk, clock, storeId, SEGMENT_BYTES, lastSegment)
  const file = await disk.open(segmentName(end.position.segment))
  const log = new LogWriter(disk, supply, storeId, file, SEGMENT_BYTES, end.position)
  durability.start({
    log,
    supply,
    checkpoints,
    revision: () => kernel.revision,
    shift,
    onCommit() {},
    closeFiles: () => supply.close(),
  })
  return { kernel, durability, log, storeId, shift }
}

/** The whole contents of a kernel, in an order that does not depend on its past. */
function description(kernel: Kernel) {
  const told: string[] = []
  const tenures: string[] = []
  const keep =
    (name: string) =>
    (...rest: unknown[]) =>
      void (name === 'tenure' ? tenures : told).push(JSON.stringify([name, ...rest], plain))
  const names = ['granted', 'capped', 'claimed', 'answered', 'tenure', 'remembered']
  const changeSink = Object.fromEntries(
    names.map((name) => [name, keep(name)]),
  ) as unknown as ChangeSink
  kernel.describe(0, kernel.slots, changeSink)
  for (const _ of kernel.describeRetained(changeSink));
  return { told: told.sort(), tenures }
}

/**
 * The start of a hold depends on the previous holder, whose slice may have been described later.
 * Whether a claim holds must be right, but its start may be too early.
 */
function plain(name: string, value: unknown): unknown {
  if (name === 'heldSince') return value === 0 ? 'waits' : 'holds'
  return value === Infinity ? 'ever' : value
}

interface Step {
  readonly what: number
  readonly which: number
  readonly key: number
  readonly time: number
}

/** Carries out random commands on a kernel. */
class Driver {
  readonly #kernel: Kernel
  readonly #clock: BusyClock
  #leases: string[] = []
  #claims: { lease: string; key: string; token: number }[] = []
  #requests = 0

  constructor(kernel: Kernel, clock: BusyClock) {
    this.#kernel = kernel
    this.#clock = clock
  }

  run({ what, which, key, time }: Step): void {
    const now = this.#clock.now()
    const lease = this.#leases[which % Math.max(this.#leases.length, 1)] ?? '0.1'
    const claim = this.#claims[which % Math.max(this.#claims.length, 1)]
    const claims = this.#specs(which, key)
    const request = which % 3 === 0 ? `request-${this.#requests++}` : undefined
    const kernel = this.#kernel
    if (what < 5) {
      const parent = which % 2 === 0 && this.#leases.length > 0 ? lease : undefined
      const ttl = time % 4 === 0 ? Infinity : 10 + time * 10
      const maxLife = time % 5 === 0 && ttl !== Infinity ? ttl * 2 : undefined
      const spec = { holder: `h${which}`, ttl, maxLife, parent, labels: { zone: `${key}` } }
      const answer = kernel.grant({ ...spec, ...(key % 3 && { claims }), request }, now)
      if (answer.outcome === 'granted') {
        this.#leases.push(answer.lease)
        if (key % 3) this.#note(answer.lease, claims, answer.token)
      }
    } else if (what < 8) {
      const answer = kernel.claim({ lease, claims, ifFree: time % 2 === 0, request }, now)
      if (answer.outcome === 'claimed') this.#note(lease, claims, answer.token)
    } else if (what < 10) {
      if (claim) kernel.release({ ...claim, keys: [claim.key], request }, now)
    } else if (what === 10) {
      if (claim) kernel.update({ ...claim, value: `v${time}`, request }, now)
    } else if (what === 11) {
      kernel.revoke({ target: { lease }, by: 'me', why: `w${time}`, request }, now)
    } else if (what === 12) {
      kernel.revoke({ target: { lease }, after: time * 5, by: 'me' }, now)
    } else if (what === 13) {
      kernel.revoke({ target: key % 2 ? { prefix: `k/${key}` } : { parent: lease } }, now)
    } else {
      this.#clock.advance(time)
      kernel.expire(this.#clock.now(), 5)
    }
  }

  #specs(which: number, key: number) {
    const mode = which % 4 === 0 ? ('shared' as const) : ('exclusive' as const)
    const limit = mode === 'shared' && key % 2 ? { limit: 2 } : {}
    const one = { key: `k/${key}`, mode, value: 'x'.repeat(which), ...limit }
    return which % 5 === 0 ? [one, { ...one, key: `k/${key + 1}` }] : [one]
  }

  #note(lease: string, claims: readonly { key: string }[], token: number): void {
    for (const { key } of claims) this.#claims.push({ lease, key, token })
  }
}

const step = fc.record({
  what: fc.nat({ max: 15 }),
  which: fc.nat({ max: 60 }),
  key: fc.nat({ max: 6 }),
  time: fc.nat({ max: 60 }),
})

describe('a snapshot taken while the kernel continues', () => {
  it('gives, with the log from its start, the same state', async () => {
    const steps = fc.array(step, { minLength: 5, maxLength: 120, size: 'max' })
    await fc.assert(
      fc.asyncProperty(
        steps,
        steps,
        steps,
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 0, max: 4 }),
        async (before, during, after, sliceSlots, perTurn) => {
          const disk = new MemoryDisk()
          const clock = new BusyClock()
          const { kernel, durability, log, storeId, shift } = await open(disk, clock)
          const driver = new Driver(kernel, clock)
          for (const each of before) driver.run(each)
          let next = 0
          clock.meanwhile = () => {
            for (let count = 0; count < perTurn; count++) {
              const each = during[next++]
              if (each) driver.run(each)
            }
          }
          const signal = new AbortController().signal
          const logged = async () => {
            await durability.eventually(signal)
            return log.position.sequence
          }
          await writeSnapshot(disk, clock, kernel, {
            storeId,
            number: 1,
            start: log.position,
            shift,
            logged,
            signal,
            sliceSlots,
          })
          clock.meanwhile = () => {}
          // As after a crash at that moment: the snapshot and the log alone give the same result.
          const [named, unnamed] = [disk.copy(), disk.copy()]
          unnamed.files.delete(snapshotName(1))
          const opened = [await open(named, clock), await open(unnamed, clock)]
          // But for the times: the snapshot may have been written later than the last of the log.
          const [by, alone] = opened.map(({ kernel }) =>
            description(kernel).told.map((line) => line.replaceAll(/\b18\d{11}/g, 'time')),
          )
          expect(by).toEqual(alone)
          expect(opened[0]!.kernel.revision).toBe(opened[1]!.kernel.revision)
          for (const each of after) driver.run(each)
          // Something is written last, so that the log knows the time.
          kernel.grant({ holder: 'last', ttl: 1000 }, clock.now())
          await durability.durable()
          const again = await open(disk.copy(), clock)
          const [was, is] = [description(kernel), description(again.kernel)]
          expect(is.told).toEqual(was.told)
          expect(is.tenures).toEqual(expect.arrayContaining(was.tenures))
          expect(again.kernel.revision).toBe(kernel.revision)
          await durability.close()
        },
      ),
      { numRuns: 200 },
    )
  }, 240_000)
})
