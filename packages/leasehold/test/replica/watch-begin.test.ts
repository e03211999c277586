import { describe, expect, it } from 'vitest'
import { MemoryLog, type Position } from '../../src/log/index.ts'
import type { Notice } from '../../src/port/index.ts'
import { replicaStore } from '../../src/replica/index.ts'
import { FaultyLog } from './faulty-log.ts'

/** A log that says where it ends only when it is let. */
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
  it('tells of what its caller does after it, though it is slow to begin', async () => {
    const { log, store, asked } = await open()
    const notices: Notice[] = []
    const heard = new Promise<void>((resolve) => {
      store.watch({ prefix: 'k' }, (notice) => {
        notices.push(notice)
        if (notice.type === 'events') resolve()
      })
    })
    const granted = store.grant({ holder: 'h', ttl: 1000, claims: [{ key: 'k1' }] })
    await asked(1)
    // The grant is in no entry yet, or the watch would begin behind it.
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
    log.asked[0]!()
    await granted
    await heard
    expect(notices).toMatchObject([
      { type: 'watching' },
      { type: 'events', events: [{ type: 'claimed', key: 'k1' }] },
    ])
    await store.close()
  })

  it('does not hold up what its caller did before it', async () => {
    const { log, store, asked } = await open()
    store.watch({ prefix: 'k' }, () => {})
    const granted = store.grant({ holder: 'h', ttl: 1000 })
    const later: Notice[] = []
    store.watch({ prefix: 'k' }, (notice) => later.push(notice))
    await asked(1)
    log.asked[0]!()
    await expect(granted).resolves.toMatchObject({ outcome: 'granted' })
    // It has neither begun nor been given up.
    expect(later).toEqual([])
    await asked(2)
    log.asked[1]!()
    await store.close()
  })
})
