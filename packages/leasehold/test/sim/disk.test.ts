import { describe, expect, it } from 'vitest'
import { type DiskFaults, SimDisk, World } from '../../src/testing/index.ts'

const SECTORS = 32
const BYTES = SECTORS * 512

function make(seed = 1, faults: Partial<DiskFaults> = {}) {
  const world = new World(seed)
  const node = world.node('server')
  const disk = new SimDisk(node, { sync: [1, 2], failure: 0, ...faults })
  const run = async <T>(promise: Promise<T>): Promise<T> => {
    promise.catch(() => undefined)
    await world.run(world.now + 200)
    return promise
  }
  return { world, node, disk, run }
}

async function written(disk: SimDisk): Promise<number[]> {
  const file = await disk.open('f')
  const bytes = await file.read(0, BYTES)
  const sectors: number[] = []
  for (let sector = 0; sector < SECTORS; sector++) {
    const part = new Set(bytes.subarray(sector * 512, (sector + 1) * 512))
    expect(part.size).toBeLessThanOrEqual(1)
    sectors.push([...part][0] ?? -1)
  }
  return sectors
}

async function fileOf(disk: SimDisk, content: number): Promise<void> {
  const file = await disk.create('f')
  await file.write(Buffer.alloc(BYTES, content), 0)
  await file.sync()
  await disk.sync()
}

describe('SimDisk', () => {
  it('tears writes that were not durable when the power fails, sector by sector', async () => {
    const { node, disk, run } = make(4)
    await run(fileOf(disk, 1))
    const file = await run(disk.open('f'))
    await run(file.write(Buffer.alloc(BYTES, 2), 0))
    node.crash()
    disk.crashed(true)
    node.start(() => undefined)
    const sectors = await run(written(disk))
    expect(new Set(sectors)).toEqual(new Set([1, 2]))
  })

  it('keeps synced data, and loses nothing if only the process dies', async () => {
    const { node, disk, run } = make(4)
    await run(fileOf(disk, 1))
    const file = await run(disk.open('f'))
    await run(file.write(Buffer.alloc(BYTES, 2), 0))
    node.crash()
    disk.crashed(false)
    node.start(() => undefined)
    expect(new Set(await run(written(disk)))).toEqual(new Set([2]))
    await run(disk.open('f').then((again) => again.sync()))
    node.crash()
    disk.crashed(true)
    node.start(() => undefined)
    expect(new Set(await run(written(disk)))).toEqual(new Set([2]))
  })

  it('tears a durable write in progress when the process dies', async () => {
    const { world, node, disk, run } = make(9, { sync: [50, 60] })
    await run(fileOf(disk, 1))
    const file = await run(disk.open('f'))
    void file.writeDurably(Buffer.alloc(BYTES, 2), 0)
    await world.run(world.now + 10)
    node.crash()
    disk.crashed(false)
    node.start(() => undefined)
    expect(new Set(await run(written(disk)))).toEqual(new Set([1, 2]))
  })

  it('may lose a name that was not synced, with the power', async () => {
    const kept = new Set<boolean>()
    for (let seed = 1; seed <= 40; seed++) {
      const { node, disk, run } = make(seed)
      await run(disk.create('f'))
      node.crash()
      disk.crashed(true)
      node.start(() => undefined)
      kept.add((await run(disk.list())).includes('f'))
    }
    expect(kept).toEqual(new Set([true, false]))
  })

  it('fails a durable write with EIO, having written some of it', async () => {
    const { disk, run } = make(5, { failure: 1 })
    await run(fileOf(disk, 1))
    const file = await run(disk.open('f'))
    await expect(run(file.writeDurably(Buffer.alloc(BYTES, 2), 0))).rejects.toMatchObject({
      code: 'EIO',
    })
    expect(new Set(await run(written(disk)))).toEqual(new Set([1, 2]))
  })

  it('has one owner at a time, until that is gone', async () => {
    const { node, disk, run } = make()
    const lock = await run(disk.lock())
    await expect(disk.lock()).rejects.toMatchObject({ code: 'storage-locked' })
    await run(lock.release())
    await run(disk.lock())
    node.crash()
    disk.crashed(false)
    node.start(() => undefined)
    await run(disk.lock())
  })
})
