import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Log, MemoryLog, type Snapshot } from '../../src/log/index.ts'
import { decodeEntry } from '../../src/replica/entry.ts'
import { replicaStore } from '../../src/replica/index.ts'
import { Machine, snapshotBlocks } from '../../src/replica/state/index.ts'
import { StoreSide } from '../../src/testing/commands/sides.ts'
import { type Command, commandSequences, randomRuns, TestClock } from '../../src/testing/index.ts'

const limits = { history: 256 }
const NOBODY = { holds() {}, removed() {}, capped() {}, gone() {} }

/** The entries of a log, as a follower from position 0 receives them. */
async function entriesOf(log: Log): Promise<{ position: number; bytes: Uint8Array }[]> {
  const tail = await log.tail()
  return new Promise((resolve) => {
    const seen: { position: number; bytes: Uint8Array }[] = []
    const following = log.follow(0, {
      entries: (entries) => {
        seen.push(...entries)
        if (seen.at(-1)!.position < tail) return
        following.close()
        resolve(seen)
      },
      ended: () => {},
    })
  })
}

/** The whole state of a machine, and the order in which it will forget. */
function stateOf(machine: Machine): unknown[] {
  const { kernel, members, time, epoch, position, floor, semantics, history, checksum } = machine
  const state: unknown[] = [kernel.revision, time, epoch, position, floor, semantics, members.size]
  const keep =
    (what: string) =>
    (...values: unknown[]) => {
      state.push([what, ...values])
    }
  const changeSink = {
    ...{ granted: keep('granted'), capped: keep('capped'), ended: keep('ended') },
    ...{ claimed: keep('claimed'), updated: keep('updated'), released: keep('released') },
    ...{ answered: keep('answered'), remembered: keep('remembered'), tenure: keep('tenure') },
  }
  kernel.describe(0, kernel.slots, changeSink)
  for (let slot = 0; slot < kernel.slots; slot++) {
    if (kernel.bySlot.born(slot) === 0) continue
    state.push([
      kernel.bySlot.renewedAt(slot),
      machine.renewedPosition(slot),
      machine.lifeLeft(slot),
    ])
  }
  const { retained } = kernel
  state.push([...retained.answers()], [...retained.ends()])
  state.push([...retained.tenures()], [...retained.idleKeys()])
  state.push(checksum.value, history.value, history.oldest, history.at(position))
  return state
}

/** The events that a watch from this revision receives. */
function eventsAfter({ kernel: { events } }: Machine, revision: number): unknown[] {
  const received: unknown[] = []
  for (let at = events.after(revision); at < events.next; at++) received.push(events.event(at))
  return received
}

const restart = (machine: Machine): Machine => {
  const again = new Machine(NOBODY)
  again.restore([...snapshotBlocks(machine.copy())], machine.position, 0)
  return again
}

/** Small limits, so that much is forgotten. */
const tiny = { history: 8, historyPerKey: 3, idleKeys: 3, requests: 4, ended: 3, events: 64 }

describe('a machine', () => {
  it('is the same at a position, whether by entries or by a snapshot', async () => {
    const sequences: fc.Arbitrary<Command[]> = commandSequences(fc)
    const routes = fc.array(fc.nat(40), { minLength: 1, maxLength: 5 })
    await fc.assert(
      fc.asyncProperty(sequences, routes, async (commands, cuts) => {
        const shared = new MemoryLog()
        const clock = new TestClock()
        const store = await replicaStore(shared.open(), { clock, limits: tiny, coalesce: 0 })
        const side = new StoreSide({ store, advance: (ms) => clock.advance(ms) }, 'p/')
        for (const command of commands) await side.run(command)
        const entries = await entriesOf(shared.open())
        const whole = new Machine(NOBODY)
        let restored = new Machine(NOBODY)
        for (const [at, { position, bytes }] of entries.entries()) {
          whole.apply(decodeEntry(bytes), position, 0)
          restored.apply(decodeEntry(bytes), position, 0)
          if (cuts.includes(at)) restored = restart(restored)
          expect(stateOf(restored)).toEqual(stateOf(whole))
        }
        const { completeAfter } = restored.kernel.events
        expect(eventsAfter(restored, completeAfter)).toEqual(eventsAfter(whole, completeAfter))
        await store.close()
      }),
      randomRuns(200),
    )
  }, 60_000)

  it('is saved as it was, even if it changes while it is written', async () => {
    const shared = new MemoryLog()
    const clock = new TestClock()
    const store = await replicaStore(shared.open(), { clock, limits: tiny, coalesce: 0 })
    for (let at = 0; at < 1200; at++) {
      const claims = [{ key: `key-${at % 700}` }]
      await store.grant({ request: `r${at}`, holder: `h${at}`, ttl: 60_000, claims })
    }
    const entries = await entriesOf(shared.open())
    const machine = new Machine(NOBODY)
    const apply = (from: number, to: number) => {
      for (const { position, bytes } of entries.slice(from, to)) {
        machine.apply(decodeEntry(bytes), position, 0)
      }
    }
    apply(0, 1100)
    const then = stateOf(machine)
    const { position } = machine
    const blocks = snapshotBlocks(machine.copy())
    const written = [blocks.next().value!]
    apply(1100, 1150)
    written.push(blocks.next().value!)
    apply(1150, entries.length)
    written.push(...blocks)
    const restored = new Machine(NOBODY)
    restored.restore(written, position, 0)
    expect(stateOf(restored)).toEqual(then)
    await store.close()
  })
})

describe('a snapshot', () => {
  const chunks = async () => {
    const shared = new MemoryLog({ entryBytes: 2000 })
    const clock = new TestClock()
    const options = { clock, limits: tiny, coalesce: 0, snapshotBytes: 1000 }
    const store = await replicaStore(shared.open(), options)
    for (let at = 0; at < 80; at++) {
      await store.grant({ holder: `h${at}`, ttl: 60_000, claims: [{ key: `key-${at}` }] })
      await clock.settle()
    }
    await store.close()
    return (await shared.open().loadSnapshot())!
  }

  /** A log whose snapshot is damaged. */
  const damaged = (snapshot: Snapshot): Log => {
    const log = new MemoryLog().open()
    return Object.assign(Object.create(log) as Log, {
      promises: log.promises,
      loadSnapshot: async () => snapshot,
      close: async () => {},
    })
  }

  it('has chunks that fit into entries', async () => {
    const snapshot = await chunks()
    expect(snapshot.chunks.length).toBeGreaterThan(1)
    for (const { length } of snapshot.chunks) expect(length).toBeLessThanOrEqual(2000)
  })

  it('is refused if any byte has changed or is missing', async () => {
    const { position, chunks: parts } = await chunks()
    const whole = Buffer.concat(parts)
    const clock = new TestClock()
    for (let at = 3; at < whole.length; at += 97) {
      const wrong = Buffer.from(whole)
      wrong[at]! ^= 4
      const opening = replicaStore(damaged({ position, chunks: [wrong] }), { clock })
      await expect(opening, `byte ${at}`).rejects.toMatchObject({ code: 'storage-damaged' })
    }
    const short = whole.subarray(0, whole.length - 10)
    const opening = replicaStore(damaged({ position, chunks: [short] }), { clock })
    await expect(opening).rejects.toThrow(`the snapshot of position ${position} cannot be read`)
  })

  it('of a newer version is refused', async () => {
    const chunk = Uint8Array.of(0x4c, 0x53, 7, 0)
    const opening = replicaStore(damaged({ position: 5, chunks: [chunk] }), {
      clock: new TestClock(),
    })
    await expect(opening).rejects.toMatchObject({ code: 'unsupported' })
  })
})

describe('a replica that joins late', () => {
  it('loads a snapshot, and then has the same state as the others', async () => {
    const log = new MemoryLog()
    const clock = new TestClock()
    const options = { clock, limits, coalesce: 0, snapshotBytes: 1000 }
    const first = await replicaStore(log.open(), options)
    for (let at = 0; at < 100; at++) {
      await first.grant({ holder: 'h', ttl: 60_000, claims: [{ key: `key-${at % 40}` }] })
    }
    await clock.settle()
    const handle = log.open()
    expect(await handle.loadSnapshot()).toBeDefined()
    const late = await replicaStore(log.open(), options)
    for (const query of [{ prefix: '' }, { leases: true as const }]) {
      expect(await late.read(query)).toEqual(await first.read(query))
    }
    const { lease } = (await first.grant({ holder: 'h', ttl: 1000 })) as { lease: string }
    expect(await late.renew([lease])).toEqual({ lost: [], capped: [] })
    await first.close()
    await clock.advance(1000)
    expect((await late.read({ lease })).lease).toBeUndefined()
    await clock.advance(60_000)
    expect((await late.read({ leases: true })).leases).toEqual([])
    await late.close()
  })
})
