import { describe, expect, it } from 'vitest'
import { KIND, putFrame, readFrame } from '../../../../src/stores/file/log/frame.ts'
import { type Manifest, ManifestFile } from '../../../../src/stores/file/manifest.ts'
import { MemoryDisk } from '../memory-disk.ts'

const FIRST: Manifest = {
  storeId: 'store',
  state: 'new',
  snapshot: 0,
  end: { segment: 1, offset: 128, sequence: 1 },
  revision: 0,
  ceiling: 0,
}
const SECOND: Manifest = {
  storeId: 'store',
  state: 'open',
  snapshot: 3,
  end: { segment: 5, offset: 640, sequence: 70 },
  revision: 1000,
  ceiling: 2 ** 40,
}
const THIRD: Manifest = { ...SECOND, state: 'closed', revision: 2000 }

const BLOCK = 4096

async function read(disk: MemoryDisk): Promise<Manifest> {
  const { file, manifest } = await ManifestFile.open(disk)
  await file.close()
  return manifest
}

/** A manifest that was written so often. */
async function make(manifests: readonly Manifest[] = []): Promise<MemoryDisk> {
  const disk = new MemoryDisk()
  const file = await ManifestFile.create(disk, FIRST)
  for (const manifest of manifests) await file.write(manifest)
  await file.close()
  return disk
}

const bytesOf = (disk: MemoryDisk) => disk.files.get('manifest')!
const damaged = expect.objectContaining({ code: 'storage-damaged' })

describe('the manifest', () => {
  it('is the last one written, in this process and the next', async () => {
    expect(await read(await make())).toEqual(FIRST)
    expect(await read(await make([SECOND]))).toEqual(SECOND)
    const disk = await make([SECOND, THIRD])
    expect(await read(disk)).toEqual(THIRD)
    const { file } = await ManifestFile.open(disk)
    await file.write(SECOND)
    await file.close()
    expect(await read(disk)).toEqual(SECOND)
    expect(disk.openFiles).toBe(0)
  })

  it('is the previous one if the last was not written', async () => {
    const [before, after] = [await make([SECOND]), await make([SECOND, THIRD])]
    for (const block of [0, 1]) {
      const disk = after.copy()
      bytesOf(before).copy(bytesOf(disk), block * BLOCK, block * BLOCK, (block + 1) * BLOCK)
      expect(await read(disk)).toEqual(block === 0 ? THIRD : SECOND)
    }
  })

  it('is written beside the previous one, never over it', async () => {
    const disk = await make([SECOND])
    const places: number[] = []
    disk.fault.writing = (_name, _bytes, position) => void places.push(position)
    const { file } = await ManifestFile.open(disk)
    for (let count = 0; count < 4; count++) await file.write(THIRD)
    await file.close()
    expect(new Set(places)).toEqual(new Set([0, BLOCK]))
    for (const [at, place] of places.entries()) expect(place).not.toBe(places[at - 1])
  })

  it('is refused if either of its parts is damaged or missing', async () => {
    const disk = await make([SECOND, THIRD])
    for (const at of [0, 5, 40, BLOCK, BLOCK + 5, BLOCK + 40]) {
      const copy = disk.copy()
      bytesOf(copy)[at]! ^= 1
      await expect(read(copy), `byte ${at}`).rejects.toThrow(damaged)
      expect(copy.openFiles).toBe(0)
    }
    for (const from of [0, BLOCK]) {
      const copy = disk.copy()
      bytesOf(copy).fill(0, from, from + BLOCK)
      await expect(read(copy), `zeros from ${from}`).rejects.toThrow(damaged)
    }
  })

  it('has parts of one frame each, which no other kind of frame can replace', async () => {
    const disk = await make([SECOND])
    for (const [slot, generation] of [2, 1].entries()) {
      const copy = disk.copy()
      const { header, payload } = readFrame(bytesOf(copy), slot * BLOCK, 0, KIND.manifest)!
      const { last, time, sequence, index } = header
      expect([last, time, sequence, index]).toEqual([true, 0, generation, 0])
      const forged = { ...header, kind: KIND.segment }
      putFrame(bytesOf(copy), slot * BLOCK, 0, forged, Buffer.from(payload), 0)
      await expect(read(copy), `part ${slot}`).rejects.toThrow(damaged)
    }
  })

  it('is refused if its size is wrong', async () => {
    const disk = await make()
    for (const size of [0, BLOCK, 2 * BLOCK - 1]) {
      const copy = disk.copy()
      copy.files.set('manifest', bytesOf(disk).subarray(0, size))
      await expect(read(copy), `${size} bytes`).rejects.toThrow(damaged)
    }
    const longer = disk.copy()
    longer.files.set('manifest', Buffer.concat([bytesOf(disk), Buffer.alloc(1)]))
    await expect(read(longer)).rejects.toThrow(damaged)
  })

  it('is refused if its parts do not belong together', async () => {
    const swapped = await make([SECOND])
    const bytes = bytesOf(swapped)
    swapped.files.set('manifest', Buffer.concat([bytes.subarray(BLOCK), bytes.subarray(0, BLOCK)]))
    await expect(read(swapped)).rejects.toThrow(damaged)
    const [old, later] = [await make(), await make([SECOND, THIRD, SECOND])]
    bytesOf(old).copy(bytesOf(later), BLOCK, BLOCK, 2 * BLOCK)
    await expect(read(later)).rejects.toThrow('do not belong together')
    const [one, other] = [await make([SECOND]), await make([{ ...SECOND, storeId: 'other' }])]
    bytesOf(other).copy(bytesOf(one), 0, 0, BLOCK)
    await expect(read(one)).rejects.toThrow('do not belong together')
  })
})
