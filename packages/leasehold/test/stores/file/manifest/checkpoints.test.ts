import { describe, expect, it } from 'vitest'
import { Checkpoints, RESERVED } from '../../../../src/stores/file/checkpoints.ts'
import { type Manifest, ManifestFile } from '../../../../src/stores/file/manifest.ts'
import { rest, StillClock } from '../harness.ts'
import { diskError, MemoryDisk } from '../memory-disk.ts'

const END = { segment: 3, offset: 4096, sequence: 10 }
const FIRST: Manifest = {
  storeId: 'store',
  state: 'open',
  snapshot: 2,
  end: END,
  revision: 100,
  ceiling: 100 + RESERVED,
}

/** The position of the log, this many frames after the start. */
const end = (frames: number, segment = END.segment) => ({
  segment,
  offset: END.offset + 64 * frames,
  sequence: END.sequence + frames,
})

async function begin() {
  const disk = new MemoryDisk()
  const clock = new StillClock()
  const checkpoints = new Checkpoints(await ManifestFile.create(disk, FIRST), clock, FIRST)
  let writes = 0
  disk.fault.writing = () => {
    writes++
  }
  const written = async () => {
    const { manifest, file } = await ManifestFile.open(disk)
    await file.close()
    return manifest
  }
  return { disk, clock, checkpoints, written, writes: () => writes }
}

describe('reserving revisions', () => {
  it('writes nothing up to the ceiling, and reserves more beyond it', async () => {
    const { checkpoints, written, writes } = await begin()
    await checkpoints.reserve(FIRST.ceiling)
    expect(writes()).toBe(0)
    await checkpoints.reserve(FIRST.ceiling + 1)
    expect(writes()).toBe(1)
    const revision = FIRST.ceiling + 1
    expect(await written()).toEqual({ ...FIRST, revision, ceiling: revision + RESERVED })
  })

  it('fails while the manifest cannot be written, and reserves nothing', async () => {
    const { disk, checkpoints, written } = await begin()
    const beyond = FIRST.ceiling + 1
    disk.fault.writing = () => {
      throw diskError('EIO')
    }
    await expect(checkpoints.reserve(beyond)).rejects.toThrow('EIO')
    await expect(checkpoints.reserve(beyond)).rejects.toThrow('EIO')
    disk.fault = {}
    await checkpoints.reserve(beyond)
    expect((await written()).ceiling).toBe(beyond + RESERVED)
  })

  it('waits for a second write if the current one reserves too little', async () => {
    const { checkpoints, written, writes } = await begin()
    const far = FIRST.ceiling + 2 * RESERVED
    await Promise.all([checkpoints.reserve(FIRST.ceiling + 1), checkpoints.reserve(far)])
    expect(writes()).toBe(2)
    expect((await written()).ceiling).toBe(far + RESERVED)
  })
})

describe('a commit', () => {
  it('causes one write of the manifest within a second, for all commits together', async () => {
    const { checkpoints, clock, written, writes } = await begin()
    checkpoints.committed(end(1), 101)
    clock.advance(600)
    checkpoints.committed(end(2), 102)
    clock.advance(399)
    await rest()
    expect(writes()).toBe(0)
    clock.advance(1)
    await rest()
    expect(writes()).toBe(1)
    const expected = { ...FIRST, end: end(2), revision: 102, ceiling: 102 + RESERVED }
    expect(await written()).toEqual(expected)
    clock.advance(10_000)
    await rest()
    expect(writes()).toBe(1)
  })

  it('that added nothing to the log causes no write', async () => {
    const { checkpoints, clock, writes } = await begin()
    checkpoints.committed(end(0), 100)
    clock.advance(10_000)
    await rest()
    expect(writes()).toBe(0)
  })

  it('in a new segment writes the manifest at once', async () => {
    const { checkpoints, written, writes } = await begin()
    checkpoints.committed(end(5, END.segment + 1), 101)
    await rest()
    expect(writes()).toBe(1)
    expect((await written()).end).toEqual(end(5, END.segment + 1))
  })

  it('that leaves less than half of the reserved revisions reserves more at once', async () => {
    const { checkpoints, written, writes } = await begin()
    checkpoints.committed(end(1), FIRST.ceiling - RESERVED / 2)
    await rest()
    expect(writes()).toBe(0)
    const revision = FIRST.ceiling - RESERVED / 2 + 1
    checkpoints.committed(end(2), revision)
    await rest()
    expect(writes()).toBe(1)
    expect((await written()).ceiling).toBe(revision + RESERVED)
  })

  it('is written a second later if writing the manifest failed', async () => {
    const { disk, clock, checkpoints, written } = await begin()
    disk.fault.writing = () => {
      throw diskError('EIO')
    }
    checkpoints.committed(end(1), 101)
    clock.advance(1000)
    await rest()
    expect((await written()).end).toEqual(END)
    disk.fault = {}
    clock.advance(1000)
    await rest()
    expect((await written()).end).toEqual(end(1))
  })

  it('during a write of the manifest is written after it', async () => {
    const { disk, clock, checkpoints, written } = await begin()
    let open = () => {}
    disk.gate = new Promise((resolve) => {
      open = resolve
    })
    checkpoints.committed(end(1), 101)
    clock.advance(1000)
    checkpoints.committed(end(2), 102)
    clock.advance(1000)
    open()
    await rest()
    expect((await written()).end).toEqual(end(1))
    clock.advance(1000)
    await rest()
    expect((await written()).end).toEqual(end(2))
  })

  it('never lowers the revision or the ceiling that were written', async () => {
    const { checkpoints, clock, written } = await begin()
    await checkpoints.reserve(FIRST.ceiling + 1000)
    const before = await written()
    checkpoints.committed(end(1), 101)
    clock.advance(1000)
    await rest()
    expect(await written()).toEqual({ ...before, end: end(1) })
  })
})

describe('a snapshot', () => {
  it('is named in the manifest before older files are removed', async () => {
    const { disk, checkpoints, written, writes } = await begin()
    await checkpoints.snapshotTaken(2)
    expect(writes()).toBe(0)
    disk.fault.writing = () => {
      throw diskError('EIO')
    }
    await expect(checkpoints.snapshotTaken(3)).rejects.toThrow('EIO')
    disk.fault = {}
    await checkpoints.snapshotTaken(3)
    expect(await written()).toMatchObject({ snapshot: 3, end: END, state: 'open' })
  })
})

describe('closing', () => {
  it('writes the end of the log, and stops reserving revisions', async () => {
    const { checkpoints, written } = await begin()
    await checkpoints.snapshotTaken(3)
    await checkpoints.close({ end: end(7), revision: 107 })
    expect(await written()).toEqual({
      ...FIRST,
      state: 'closed',
      snapshot: 3,
      end: end(7),
      revision: 107,
      ceiling: 107,
    })
  })

  it('leaves the manifest unchanged if not everything was written', async () => {
    const { checkpoints, clock, written, writes } = await begin()
    checkpoints.committed(end(1), 101)
    await checkpoints.close(undefined)
    clock.advance(10_000)
    checkpoints.committed(end(2, END.segment + 1), 102)
    checkpoints.committed(end(3), 103)
    clock.advance(10_000)
    await rest()
    expect(writes()).toBe(0)
    expect(await written()).toEqual(FIRST)
  })

  it('during a write of the manifest leaves no timer, although more was committed meanwhile', async () => {
    const { disk, clock, checkpoints, written } = await begin()
    let open = () => {}
    disk.gate = new Promise((resolve) => {
      open = resolve
    })
    checkpoints.committed(end(1, END.segment + 1), 101)
    checkpoints.committed(end(2, END.segment + 1), 102)
    const closed = checkpoints.close(undefined)
    open()
    await closed
    await rest()
    expect(clock.timers).toBe(0)
    expect((await written()).end).toEqual(end(1, END.segment + 1))
  })
})
