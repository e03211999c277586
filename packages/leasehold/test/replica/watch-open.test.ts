import { describe, expect, it } from 'vitest'
import { MemoryLog, type Position } from '../../src/log/index.ts'
import type { Notice } from '../../src/port/index.ts'
import { replicaStore } from '../../src/replica/index.ts'
import { FaultyLog } from './log-faults/faulty-log.ts'

/** A log whose `tail` answers only when the test allows it. */
class SlowTailLog extends FaultyLog {
  isSlow = false
  readonly asked: (() => void)[] = []

  override async tail(): Promise<Position> {
    if (this.isSlow) await new Promise<void>((resolve) => this.asked.push(resolve))
    return super.tail()
  }
}

async function open() {
  const log = new SlowTailLog(new MemoryLog().open())
  const store = await replicaStore(log)
  log.isSlow = true
  const asked = async (count: number) => {
    while (log.asked.length < count) await new Promise(setImmediate)
  }
  return { log, store, asked }
}

describe('a watch on a replica', () => {
  it('reports what its caller does after opening it, even if it opens slowly', async () => {
    const { log, store, asked } = await open()
    const notices: Notice[] = []
    const received = new Promise<void>((resolve) => {
      store.watch({ prefix: 'k' }, (notice) => {
        notices.push(notice)
        if (notice.type === 'events') resolve()
      })
    })
    const granted = store.grant({ holder: 'h', ttl: 1000, claims: [{ key: 'k1' }] })
    await asked(1)
    // The grant is in no entry yet: otherwise the watch would start after it.
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
    log.asked[0]!()
    await granted
    await received
    expect(notices).toMatchObject([
      { type: 'watching' },
      {
        type: 'events',
        events: [
          { type: 'claimed', key: 'k1' },
          { type: 'held', key: 'k1' },
        ],
      },
    ])
    await store.close()
  })

  it('does not delay what its caller did before opening it', async () => {
    const { log, store, asked } = await open()
    store.watch({ prefix: 'k' }, () => {})
    const granted = store.grant({ holder: 'h', ttl: 1000 })
    const later: Notice[] = []
    store.watch({ prefix: 'k' }, (notice) => later.push(notice))
    await asked(1)
    log.asked[0]!()
    await expect(granted).resolves.toMatchObject({ outcome: 'granted' })
    // The watch has neither opened nor failed.
    expect(later).toEqual([])
    await asked(2)
    log.asked[1]!()
    await store.close()
  })
})
