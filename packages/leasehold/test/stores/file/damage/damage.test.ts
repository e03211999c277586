import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import type { MemoryDisk } from '../memory-disk.ts'
import { expectCutOffRefused, judge, type Made, make } from './damaged-store.ts'

describe('damaged files', () => {
  let made: Made

  beforeAll(async () => {
    made = await make()
    const names = [...made.disk.files.keys()].sort()
    expect(names.filter((name) => name.startsWith('snapshot'))).toHaveLength(1)
    expect(names.filter((name) => name.startsWith('log')).length).toBeGreaterThan(3)
    expect(await judge(made.disk.copy(), made)).toBe('intact')
  })

  it('are refused when a file is cut off', async () => {
    for (const [name, bytes] of made.disk.files) {
      // Steps of a size that no part of a file has. Every length is tried in cut-off.test.ts.
      for (let length = 0; length < bytes.length; length += 457) {
        await expectCutOffRefused(made, name, length)
      }
      await expectCutOffRefused(made, name, bytes.length - 1)
    }
  })

  it('are refused when a file that is needed is gone', async () => {
    const outcomes = []
    for (const name of [...made.disk.files.keys()].sort()) {
      const disk = made.disk.copy()
      disk.files.delete(name)
      outcomes.push(await judge(disk, made))
    }
    // All but the segment that was made ready and holds nothing yet.
    expect(outcomes.filter((outcome) => outcome === 'intact').length).toBeLessThanOrEqual(1)
  })

  it('are refused when bits have changed, unless it makes no difference', async () => {
    const names = [...made.disk.files.keys()]
    const flip = fc.record({
      file: fc.nat(),
      at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      bit: fc.nat(7),
    })
    let runs = 0
    let refused = 0
    await fc.assert(
      fc.asyncProperty(fc.array(flip, { minLength: 1, maxLength: 3 }), async (flips) => {
        runs++
        const disk = made.disk.copy()
        for (const { file, at, bit } of flips) {
          const bytes = disk.files.get(names[file % names.length]!)!
          bytes[Math.floor(at * bytes.length)]! ^= 1 << bit
        }
        if ((await judge(disk, made)) === 'refused') refused++
      }),
      { numRuns: 3000 },
    )
    expect(refused).toBeGreaterThan(runs / 2)
  }, 240_000)

  it('are refused when any bit of the last durable answer has changed', async () => {
    const last = await lastFrame(made.disk)
    for (let at = last.from; at < last.to; at++) {
      const disk = made.disk.copy()
      disk.files.get(last.name)![at]! ^= 1 << (at % 8)
      expect(await judge(disk, made), `${last.name} at ${at}`).toBe('refused')
    }
  })

  it('are refused when a part of the log in use reads as zeros', async () => {
    const disk = made.disk.copy()
    const names = [...disk.files.keys()].filter((name) => name.startsWith('log')).sort()
    const bytes = disk.files.get(names[1]!)!
    for (let at = 0; at + 512 <= bytes.length; at += 512) {
      if (bytes.subarray(at, at + 512).every((byte) => byte === 0)) continue
      const copy = disk.copy()
      copy.files.get(names[1]!)!.fill(0, at, at + 512)
      expect(await judge(copy, made), `zeros at ${at}`).toBe('refused')
    }
  })

  it('are refused when a file of another store lies among them', async () => {
    const other = await make()
    for (const name of made.disk.files.keys()) {
      const disk = made.disk.copy()
      disk.files.set(name, other.disk.files.get(name) ?? Buffer.alloc(0))
      expect(await judge(disk, made), name).toBe('refused')
    }
  })

  it('are not changed by a refusal', async () => {
    const disk = made.disk.copy()
    const [, name] = [...disk.files.keys()].filter((each) => each.startsWith('log')).sort()
    disk.files.get(name!)![700]! ^= 1
    const before = disk.copy().files
    expect(await judge(disk, made)).toBe('refused')
    expect(disk.files).toEqual(before)
  })
})

async function lastFrame(disk: MemoryDisk) {
  const names = [...disk.files.keys()].filter((name) => name.startsWith('log')).sort()
  for (const name of names.reverse()) {
    const bytes = disk.files.get(name)!
    let to = bytes.length
    while (to > 128 && bytes[to - 1] === 0) to--
    if (to > 128) return { name, from: to - 100, to }
  }
  throw new Error('the log is empty')
}
