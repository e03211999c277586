import { describe, expect, it } from 'vitest'
import type { LeaseStore } from '../../../../src/port/index.ts'
import { RESERVED } from '../../../../src/stores/file/checkpoints.ts'
import { fileStore } from '../../../../src/stores/file/index.ts'
import { rest, SMALL, StillClock } from '../harness.ts'
import { diskError, MemoryDisk } from '../memory-disk.ts'

function open(disk: MemoryDisk, clock = new StillClock(), segmentBytes = 65_536) {
  return fileStore('memory', { disk, clock, limits: SMALL, segmentBytes })
}

const hold = (store: LeaseStore, key = 'k') =>
  store.grant({ holder: 'h', ttl: 60_000, claims: [{ key }] })

/** Makes many changes in few writes. */
async function churn(store: LeaseStore, changes: number): Promise<number> {
  const granted = await hold(store, 'churned')
  if (granted.outcome === 'busy') throw new Error('busy')
  const { lease, token } = granted
  let revision = 0
  for (let done = 0; done < changes; done += 4096) {
    const updates = Array.from({ length: 4096 }, () =>
      store.update({ lease, key: 'churned', token, value: 'v' }),
    )
    revision = (await Promise.all(updates)).at(-1)!.revision
  }
  return revision
}

describe('revisions', () => {
  it('are reserved ahead, so that no crash repeats one however many were given', async () => {
    const disk = new MemoryDisk()
    const store = await open(disk)
    const given = await churn(store, 2.5 * RESERVED)
    const files = disk.copy()
    // The log is lost back to the last checkpoint, whose end the manifest names.
    const again = await open(files)
    expect((await hold(again)).revision).toBeGreaterThan(given)
    await again.close()
    await store.close()
  }, 60_000)

  it('are reserved again when half of them are used, so that no commit waits', async () => {
    const disk = new MemoryDisk()
    const store = await open(disk, new StillClock(), 16 << 20)
    let manifests = 0
    disk.fault.writing = (name) => {
      if (name === 'manifest') manifests++
    }
    await churn(store, 0.6 * RESERVED)
    await rest()
    expect(manifests).toBe(1)
    await store.close()
  })

  it('are not given before they are reserved', async () => {
    const disk = new MemoryDisk()
    const clock = new StillClock()
    const store = await open(disk, clock)
    disk.fault.writing = (name) => {
      if (name === 'manifest') throw diskError('EIO')
    }
    const failed = await churn(store, 2 * RESERVED).catch((error: unknown) => error)
    expect(failed).toMatchObject({ code: 'storage-failed', outcome: 'unknown' })
    await expect(hold(store)).rejects.toMatchObject({ code: 'storage-failed' })
    disk.fault = {}
    for (let turn = 0; turn < 20; turn++) {
      clock.advance(5000)
      await rest(2)
    }
    const { revision } = await hold(store)
    expect(revision).toBeGreaterThan(RESERVED)
    const again = await open(disk.copy())
    expect((await hold(again)).revision).toBeGreaterThan(revision)
    await again.close()
    await store.close()
  }, 60_000)
})
