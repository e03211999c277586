import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fileStore } from '../../../../src/stores/file/index.ts'
import { contents, contentsAfterCrash, rest, SMALL, StillClock } from '../harness.ts'
import { diskError, MemoryDisk } from '../memory-disk.ts'

const SECTOR = 512

function open(disk: MemoryDisk, segmentBytes: number) {
  const clock = new StillClock()
  return fileStore('memory', { disk, clock, limits: SMALL, segmentBytes, snapshotBytes: 1 << 30 })
}

/** From the write with this number on the power is gone; of that one some sectors are there. */
function tear(disk: MemoryDisk, write: number, keeps: (sector: number) => boolean): void {
  let count = 0
  disk.fault.writing = (name, bytes, position, file) => {
    if (name === 'manifest' && count <= write) return
    if (count++ < write) return
    if (count === write + 1) {
      for (let at = position; at < position + bytes.length; ) {
        const end = Math.min((Math.floor(at / SECTOR) + 1) * SECTOR, position + bytes.length)
        if (keeps(Math.floor(at / SECTOR))) {
          file.set(bytes.subarray(at - position, end - position), at)
        }
        at = end
      }
    }
    throw diskError('EIO')
  }
}

describe('a write that is torn by a power failure', () => {
  it('is dropped, and nothing before it is lost', async () => {
    const run = fc.record({
      segmentBytes: fc.constantFrom(4096, 8192, 65_536),
      before: fc.array(fc.nat(900), { maxLength: 20 }),
      torn: fc.array(fc.nat(9000), { minLength: 1, maxLength: 12 }),
      letter: fc.constantFrom('v', '\0', 'é'),
      write: fc.nat(3),
      sectors: fc.array(fc.boolean(), { minLength: 1, maxLength: 40 }),
    })
    const seen = { whole: 0, torn: 0 }
    await fc.assert(
      fc.asyncProperty(run, async ({ segmentBytes, before, torn, letter, write, sectors }) => {
        const disk = new MemoryDisk()
        const store = await open(disk, segmentBytes)
        const grant = (length: number, index: number) =>
          store.grant({
            holder: 'h',
            ttl: 1000,
            claims: [{ key: `k${index}`, value: letter.repeat(length) }],
          })
        await Promise.all(before.map(grant))
        const was = await contents(store)
        tear(disk, write, (sector) => sectors[sector % sectors.length]!)
        const answers = await Promise.allSettled(torn.map(grant))
        await rest(3)
        const files = disk.copy()
        const again = await open(files, segmentBytes)
        const is = await contents(again)
        expect(is.revision).toBeGreaterThan(was.revision + torn.length)
        if (answers[0]!.status === 'fulfilled' || is.owned.length > was.owned.length) {
          seen.whole++
          expect(is.owned).toHaveLength(before.length + torn.length)
        } else {
          seen.torn++
          expect({ ...is, revision: was.revision }).toEqual(was)
        }
        const next = await again.grant({ holder: 'next', ttl: 1000, claims: [{ key: 'k' }] })
        expect(next.revision).toBe(is.revision + 1)
        const then = await contents(again)
        await again.close()
        const last = await open(files, segmentBytes)
        expect(await contents(last)).toEqual(then)
        await last.close()
      }),
      { numRuns: 400 },
    )
    const runs = seen.torn + seen.whole
    expect(seen.torn).toBeGreaterThan(runs / 4)
    expect(seen.whole).toBeGreaterThan(runs / 20)
  }, 240_000)

  it('is erased before anything new is written, even if the erasure is torn as well', async () => {
    const disk = new MemoryDisk()
    const store = await open(disk, 4096)
    await store.grant({ holder: 'first', ttl: 1000 })
    const was = await contentsAfterCrash(store)
    const claims = Array.from({ length: 8 }, (_, index) => ({
      key: `k${index}`,
      value: 'v'.repeat(1500),
    }))
    tear(disk, 2, (sector) => sector % 2 === 0)
    await store.grant({ holder: 'torn', ttl: 1000, claims }).catch(() => {})
    const files = disk.copy()
    for (let write = 0; write < 6; write++) {
      tear(files, write, (sector) => sector % 3 === 0)
      await open(files, 4096)
        .then((opened) => opened.close())
        .catch((error: Error) => expect(error.message).toContain('EIO'))
      files.fault = {}
      const copy = files.copy()
      const again = await open(copy, 4096)
      expect(await contentsAfterCrash(again)).toEqual(was)
      await again.close()
      expect(copy.openFiles).toBe(0)
    }
  })

  it('is damage if a later answer follows it', async () => {
    const disk = new MemoryDisk()
    const store = await open(disk, 65_536)
    const claims = [{ key: 'k', value: 'v'.repeat(5000) }]
    await store.grant({ holder: 'early', ttl: 1000, claims })
    await store.grant({ holder: 'late', ttl: 1000 })
    await store.close()
    for (const at of [1024, 4096]) {
      const copy = disk.copy()
      copy.files.get('log-00000001')!.fill(0, at, at + SECTOR)
      await expect(open(copy, 65_536)).rejects.toMatchObject({ code: 'storage-damaged' })
    }
  })
})

describe('the last answers before a crash', () => {
  const LOG = 'log-00000001'
  const START = 128

  /** The files of a store that crashed after two answers, and the start of the second. */
  async function crashed(lengths: readonly [number, number]) {
    const disk = new MemoryDisk()
    const store = await open(disk, 65_536)
    const ends: number[] = []
    for (const [index, length] of lengths.entries()) {
      const claims = [{ key: `k${index}`, value: 'v'.repeat(length) }]
      await store.grant({ holder: 'h', ttl: 1000, claims })
      ends.push(endOf(disk.files.get(LOG)!))
    }
    const files = disk.copy()
    await store.close()
    return { files, second: Math.ceil(ends[0]! / 32) * 32, end: ends[1]! }
  }

  function endOf(bytes: Buffer): number {
    let end = bytes.length
    while (bytes[end - 1] === 0) end--
    return end
  }

  async function outcome(files: MemoryDisk): Promise<string | number> {
    try {
      const store = await open(files, 65_536)
      const { leases } = await store.read({ leases: true })
      await store.close()
      return leases.length
    } catch (error) {
      return (error as { code: string }).code
    }
  }

  it.each([100, 3000])('are refused if a bit of one with %i bytes is wrong', async (length) => {
    const { files, second, end } = await crashed([100, length])
    expect(await outcome(files.copy())).toBe(2)
    for (let at = second; at < end; at += 41) {
      const copy = files.copy()
      copy.files.get(LOG)![at]! ^= 1 << (at % 8)
      expect(await outcome(copy), `byte ${at}`).toBe('storage-damaged')
    }
  })

  it.each<[number, number]>([
    [100, 100],
    [5000, 100],
    [5000, 9000],
  ])('are refused if a sector of the first is zeros: %i bytes, then %i', async (...lengths) => {
    const { files, second } = await crashed(lengths)
    for (let at = START; at < second; at += SECTOR) {
      const copy = files.copy()
      const from = Math.floor(at / SECTOR) * SECTOR
      // In the sector where the second starts as well, only the part of the first.
      copy.files.get(LOG)!.fill(0, Math.max(from, START), Math.min(from + SECTOR, second))
      expect(await outcome(copy), `sector ${from}`).toBe('storage-damaged')
    }
  })

  it('are read without the second if a sector of it is zeros, as after a power failure', async () => {
    const { files, second, end } = await crashed([100, 3000])
    for (let at = Math.ceil(second / SECTOR) * SECTOR; at < end; at += SECTOR) {
      files.files.get(LOG)!.fill(0, at, at + SECTOR)
      expect(await outcome(files.copy()), `sector ${at}`).toBe(1)
    }
  })
})
