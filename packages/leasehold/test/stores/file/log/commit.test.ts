import { describe, expect, it } from 'vitest'
import { DEFAULT_LIMITS } from '../../../../src/port/index.ts'
import { fileStore } from '../../../../src/stores/file/index.ts'
import { contents, rest, SMALL, StillClock } from '../harness.ts'
import { diskError, MemoryDisk } from '../memory-disk.ts'

function open(disk: MemoryDisk, more: object = {}) {
  const clock = new StillClock()
  return fileStore('memory', { disk, clock, limits: SMALL, segmentBytes: 65_536, ...more })
}

const lease = { holder: 'h', ttl: 60_000 }

describe('group commit', () => {
  it('writes all changes of one turn together', async () => {
    const disk = new MemoryDisk()
    const store = await open(disk)
    await Promise.all(Array.from({ length: 100 }, () => store.grant(lease)))
    expect(disk.writes).toBe(1)
    await store.close()
  })

  it('writes all changes during a write in the next one', async () => {
    const disk = new MemoryDisk()
    const store = await open(disk)
    let free = () => {}
    disk.gate = new Promise((resolve) => {
      free = resolve
    })
    const answered: number[] = []
    const grant = (number: number) => store.grant(lease).then(() => answered.push(number))
    const first = grant(1)
    await rest(3)
    const others = [2, 3, 4].map(grant)
    await rest(3)
    expect(disk.writes).toBe(1)
    expect(answered).toEqual([])
    disk.gate = undefined
    free()
    await first
    expect(answered).toEqual([1])
    await Promise.all(others)
    expect(disk.writes).toBe(2)
    await store.close()
  })

  it('gives a negative answer, too, only when it is durable', async () => {
    const disk = new MemoryDisk()
    const store = await open(disk)
    const granted = await store.grant({ ...lease, claims: [{ key: 'k' }] })
    let free = () => {}
    disk.gate = new Promise((resolve) => {
      free = resolve
    })
    const answered: string[] = []
    const holder = store.claim({
      lease: (granted as { lease: string }).lease,
      claims: [{ key: 'x' }],
    })
    const busy = store.grant({ ...lease, claims: [{ key: 'x' }], ifFree: true })
    const read = store.read({ key: 'x' })
    for (const each of [holder, busy, read]) void each.then(() => answered.push('answered'))
    await rest(5)
    expect(answered).toEqual([])
    free()
    expect((await busy).outcome).toBe('busy')
    expect((await read).claims).toHaveLength(1)
    await store.close()
  })

  it('answers a renewal of a broken lease only when the break is durable', async () => {
    const disk = new MemoryDisk()
    const store = await open(disk)
    const { lease: id } = (await store.grant(lease)) as { lease: string }
    let free = () => {}
    disk.gate = new Promise((resolve) => {
      free = resolve
    })
    const order: string[] = []
    const broken = store
      .revoke({ target: { lease: id }, by: 'ada', after: 1000 })
      .then(() => order.push('broken'))
    const renewed = store.renew([id]).then(({ capped }) => {
      order.push('renewed')
      return capped
    })
    await rest()
    expect(order).toEqual([])
    disk.gate = undefined
    free()
    await broken
    expect(await renewed).toMatchObject([{ end: { reason: 'broken', by: 'ada' } }])
    await store.close()
  })

  it('reports an unknown outcome to all waiters when a write fails', async () => {
    const disk = new MemoryDisk()
    const store = await open(disk)
    let free = () => {}
    disk.gate = new Promise((resolve) => {
      free = resolve
    })
    const first = store.grant(lease)
    await rest(3)
    // These wait for the write after the current one.
    const others = [store.grant(lease), store.grant(lease)]
    disk.fault.writing = () => {
      throw diskError('EIO')
    }
    free()
    for (const each of [first, ...others]) {
      await expect(each).rejects.toMatchObject({ code: 'storage-failed', outcome: 'unknown' })
    }
    disk.fault = {}
    disk.gate = undefined
    await store.close()
  })

  it('does not write renewals', async () => {
    const disk = new MemoryDisk()
    const store = await open(disk)
    const granted = await store.grant(lease)
    const { writes } = disk
    await store.renew([(granted as { lease: string }).lease])
    await rest()
    expect(disk.writes).toBe(writes)
    await store.close()
  })
})

describe('the log', () => {
  it('continues from segment to segment, and is read as one', async () => {
    const disk = new MemoryDisk()
    const store = await open(disk, { segmentBytes: 4096 })
    for (let round = 0; round < 200; round++) {
      await store.grant({ ...lease, claims: [{ key: `k${round}`, value: 'v'.repeat(round) }] })
    }
    const was = await contents(store)
    await store.close()
    expect(disk.files.size).toBeGreaterThan(10)
    const again = await open(disk, { segmentBytes: 8192 })
    expect(await contents(again)).toEqual(was)
    await again.close()
  })

  it('accepts a claim that is larger than a segment, and keeps all of it', async () => {
    const disk = new MemoryDisk()
    const store = await open(disk, { segmentBytes: 1 << 20 })
    const value = 'v'.repeat(DEFAULT_LIMITS.valueBytes)
    const claims = Array.from({ length: DEFAULT_LIMITS.keysPerClaim }, (_, index) => ({
      key: `k${index}`,
      value,
    }))
    await store.grant({ ...lease, claims })
    const was = await contents(store)
    await store.close()
    expect(disk.files.size).toBeGreaterThan(16)
    const again = await open(disk)
    expect(await contents(again)).toEqual(was)
    await again.close()
  })

  it('is shortened by snapshots, again and again', async () => {
    const disk = new MemoryDisk()
    const store = await open(disk, { segmentBytes: 4096, snapshotBytes: 4096 })
    let most = 0
    for (let round = 0; round < 600; round++) {
      const granted = await store.grant({ ...lease, claims: [{ key: `k${round % 7}` }] })
      const { lease: id } = granted as { lease: string }
      if (round % 50) await store.revoke({ target: { lease: id } })
      if (round > 300) most = Math.max(most, disk.files.size)
    }
    const was = await contents(store)
    await store.close()
    expect(Number([...disk.files.keys()].sort().at(-1)!.slice(9))).toBeGreaterThan(3)
    expect(most).toBeLessThan(25)
    const again = await open(disk, { segmentBytes: 4096 })
    expect(await contents(again)).toEqual(was)
    await again.close()
  })
})

describe('time', () => {
  it('gives every lease its full ttl, and stops while the store is closed', async () => {
    const disk = new MemoryDisk()
    const clock = new StillClock()
    const limits = SMALL
    let store = await fileStore('memory', { disk, clock, limits, segmentBytes: 65_536 })
    await store.grant({ holder: 'h', ttl: 10_000, maxLife: 50_000 })
    for (let life = 0; life < 4; life++) {
      clock.advance(5000)
      await store.close()
      clock.advance(1_000_000)
      store = await fileStore('memory', { disk, clock, limits, segmentBytes: 65_536 })
      const { leases } = await store.read({ leases: true })
      expect(leases[0]!.endOfLife - clock.now()).toBe(50_000 - 5000 * (life + 1))
      expect(leases[0]!.until - clock.now()).toBe(10_000)
    }
    await store.close()
  })

  it('is written regularly, so that a crash prolongs a life by little', async () => {
    const disk = new MemoryDisk()
    const clock = new StillClock()
    const options = { disk, clock, limits: SMALL, segmentBytes: 65_536 }
    const store = await fileStore('memory', options)
    await store.grant({ holder: 'h', ttl: Infinity, maxLife: 600_000 })
    for (let second = 0; second < 300; second++) {
      clock.advance(1000)
      await rest(2)
    }
    const again = await fileStore('memory', { ...options, disk: disk.copy() })
    const { leases } = await again.read({ leases: true })
    const remaining = leases[0]!.endOfLife - clock.now()
    expect(remaining).toBeGreaterThanOrEqual(300_000)
    expect(remaining).toBeLessThanOrEqual(330_000)
    await store.close()
    await again.close()
  })
})

describe('a disk that fails', () => {
  it('makes the outcome unknown, refuses changes until it works again, and then catches up', async () => {
    const disk = new MemoryDisk()
    const clock = new StillClock()
    const store = await fileStore('memory', { disk, clock, limits: SMALL, segmentBytes: 65_536 })
    await store.grant(lease)
    disk.fault.writing = () => {
      throw diskError('EIO')
    }
    const lost = store.grant({ ...lease, request: 'r' })
    await expect(lost).rejects.toMatchObject({ code: 'storage-failed', outcome: 'unknown' })
    await expect(store.grant(lease)).rejects.toMatchObject({ code: 'storage-failed' })
    clock.advance(100)
    await rest()
    await expect(store.grant(lease)).rejects.toMatchObject({ code: 'storage-failed' })
    disk.fault = {}
    clock.advance(10_000)
    await rest()
    const found = await store.grant({ ...lease, request: 'r' })
    expect(found.revision).toBe(2)
    expect((await store.grant(lease)).revision).toBe(3)
    const was = await contents(store)
    await store.close()
    const again = await open(disk)
    expect(await contents(again)).toEqual(was)
    await again.close()
  })

  it('fails the close if it fails until the end, and releases the folder', async () => {
    const disk = new MemoryDisk()
    const store = await open(disk)
    disk.fault.writing = () => {
      throw diskError('EIO')
    }
    await expect(store.grant(lease)).rejects.toMatchObject({ code: 'storage-failed' })
    await expect(store.close()).rejects.toMatchObject({ code: 'storage-failed' })
    disk.fault = {}
    const again = await open(disk)
    expect((await again.read({ leases: true })).leases).toEqual([])
    await again.close()
  })

  it('that is full repeats the answer to a repeated request, and its refusals', async () => {
    const disk = new MemoryDisk()
    const clock = new StillClock()
    const options = { disk, clock, limits: SMALL, segmentBytes: 65_536 }
    const store = await fileStore('memory', options)
    const done = await store.grant({ ...lease, request: 'done before' })
    disk.fault.growing = (name) => {
      if (name.startsWith('log')) throw diskError('ENOSPC')
    }
    await rest()
    const claims = [{ key: 'k', value: 'v'.repeat(1000) }]
    for (let full = false; !full; ) {
      await store.grant({ ...lease, claims }).catch(() => {
        full = true
      })
    }
    expect(await store.grant({ ...lease, request: 'done before' })).toEqual(done)
    const refused = { ...lease, request: 'refused' }
    await expect(store.grant(refused)).rejects.toMatchObject({ code: 'storage-full' })
    disk.fault = {}
    clock.advance(1000)
    await rest()
    await store.grant(lease)
    await expect(store.grant(refused)).rejects.toMatchObject({ code: 'storage-full' })
    await store.close()
  })

  it('also ends the close while a snapshot waits for a failed write', async () => {
    const disk = new MemoryDisk()
    const store = await open(disk, { snapshotBytes: 0 })
    let free = () => {}
    disk.gate = new Promise((resolve) => {
      free = resolve
    })
    const first = store.grant(lease)
    await rest(3)
    // This change arrives while the snapshot after the first write is taken.
    const second = store.grant(lease)
    disk.gate = undefined
    free()
    await first
    disk.fault.writing = () => {
      throw diskError('EIO')
    }
    await expect(second).rejects.toMatchObject({ code: 'storage-failed' })
    await rest()
    await expect(store.close()).rejects.toMatchObject({ code: 'storage-failed' })
    disk.fault = {}
    await (await open(disk)).close()
  })

  it('that is full refuses growth, accepts releases, and continues when there is space', async () => {
    const disk = new MemoryDisk()
    const clock = new StillClock()
    const options = { disk, clock, limits: SMALL, segmentBytes: 65_536, snapshotBytes: 1 << 30 }
    const store = await fileStore('memory', options)
    disk.fault.growing = (name) => {
      if (name.startsWith('log')) throw diskError('ENOSPC')
    }
    await rest()
    const granted: string[] = []
    let refusal: unknown
    while (refusal === undefined) {
      await store.grant({ ...lease, claims: [{ key: 'k', value: 'v'.repeat(1000) }] }).then(
        (answer) => granted.push((answer as { lease: string }).lease),
        (error: unknown) => {
          refusal = error
        },
      )
    }
    expect(refusal).toMatchObject({ code: 'storage-full', outcome: 'refused' })
    expect(granted.length).toBeGreaterThan(20)
    expect((await store.read({ key: 'k' })).count).toBe(granted.length)
    for (const id of granted.slice(1)) await store.revoke({ target: { lease: id } })
    await expect(store.grant(lease)).rejects.toMatchObject({ code: 'storage-full' })
    disk.fault = {}
    clock.advance(1000)
    await rest()
    await store.grant(lease)
    const was = await contents(store)
    await store.close()
    const again = await open(disk)
    expect(await contents(again)).toEqual(was)
    await again.close()
  })

  it('that is full gets space from a snapshot if the log is longer than needed', async () => {
    const disk = new MemoryDisk()
    const clock = new StillClock()
    const options = { disk, clock, limits: SMALL, segmentBytes: 131_072, snapshotBytes: 1 << 30 }
    const store = await fileStore('memory', options)
    const size = () => [...disk.files.values()].reduce((sum, bytes) => sum + bytes.length, 0)
    disk.fault.growing = (_, by) => {
      if (size() + by > 1_000_000) throw diskError('ENOSPC')
    }
    for (let round = 0; round < 6000; round++) {
      const granted = await store.grant({ ...lease, claims: [{ key: `k${round}` }] })
      await store.revoke({ target: { lease: (granted as { lease: string }).lease } })
      if (round % 50 === 0) clock.advance(1000)
    }
    expect([...disk.files.keys()].some((name) => name.startsWith('snapshot'))).toBe(true)
    await store.close()
  })
})
