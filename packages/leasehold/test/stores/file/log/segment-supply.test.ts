import { describe, expect, it } from 'vitest'
import { SegmentSupply } from '../../../../src/stores/file/log/segment-supply.ts'
import { rest, StillClock } from '../harness.ts'
import { diskError, MemoryDisk } from '../memory-disk.ts'

const BYTES = 4096

function begin(last = 1) {
  const disk = new MemoryDisk()
  const clock = new StillClock()
  const supply = new SegmentSupply(disk, clock, 'store', BYTES, last)
  let tries = 0
  const fill = () => {
    disk.fault.growing = () => {
      tries++
      throw diskError('ENOSPC')
    }
  }
  const free = () => {
    disk.fault = {}
  }
  const names = () => [...disk.files.keys()].sort()
  return { disk, clock, supply, fill, free, names, tries: () => tries }
}

describe('a segment that is needed', () => {
  it('is created, with all before it, in the requested size', async () => {
    const { disk, supply, names } = begin(1)
    await supply.need(1)
    expect(names()).toEqual([])
    await supply.need(3)
    expect(names()).toEqual(['log-00000002', 'log-00000003'])
    expect(disk.files.get('log-00000002')).toHaveLength(BYTES)
    expect([supply.last, supply.bytes]).toEqual([3, BYTES])
  })

  it('is created once, however many callers need it', async () => {
    const { disk, supply } = begin(1)
    let created = 0
    const { create } = disk
    disk.create = (name) => {
      created++
      return create.call(disk, name)
    }
    await Promise.all([supply.need(2), supply.need(2), supply.need(2)])
    expect(created).toBe(1)
  })

  it('fails with the error of the disk until it can be created', async () => {
    const { supply, fill, free, names } = begin(1)
    fill()
    await expect(supply.need(2)).rejects.toMatchObject({ code: 'ENOSPC' })
    expect(supply.fault).toMatchObject({ code: 'ENOSPC' })
    expect([supply.last, names()]).toEqual([1, []])
    free()
    await supply.need(2)
    expect([supply.last, supply.fault]).toEqual([2, undefined])
  })

  it('that failed is reported after its waiters were rejected', async () => {
    const { supply, fill } = begin(1)
    const order: string[] = []
    supply.onFault = () => void order.push('reported')
    fill()
    await supply.need(2).catch(() => order.push('refused'))
    await rest()
    expect(order).toEqual(['refused', 'reported'])
  })
})

describe('a segment that is wanted', () => {
  it('is created in the background, unless it exists', async () => {
    const { supply, names } = begin(1)
    supply.want(1)
    supply.want(2)
    await rest()
    expect(names()).toEqual(['log-00000002'])
  })

  it('is tried again every second until it can be created', async () => {
    const { clock, supply, fill, free, tries } = begin(1)
    fill()
    supply.want(2)
    await rest()
    expect(tries()).toBe(1)
    for (let second = 2; second <= 4; second++) {
      clock.advance(999)
      await rest()
      expect(tries()).toBe(second - 1)
      clock.advance(1)
      await rest()
      expect(tries()).toBe(second)
    }
    free()
    clock.advance(1000)
    await rest()
    expect(supply.last).toBe(2)
    fill()
    clock.advance(10_000)
    await rest()
    expect(tries()).toBe(4)
  })

  it('is tried again on request, but not within 100 ms of a failure', async () => {
    const { clock, supply, fill, tries } = begin(1)
    fill()
    supply.want(2)
    await rest()
    clock.advance(99)
    supply.want(2)
    await rest()
    expect(tries()).toBe(1)
    clock.advance(1)
    supply.want(2)
    await rest()
    expect(tries()).toBe(2)
    // One timer runs, however many calls there were.
    clock.advance(900)
    await rest()
    expect(tries()).toBe(3)
    clock.advance(999)
    await rest()
    expect(tries()).toBe(3)
  })

  it('is created although the one before it failed a moment ago, if that one exists now', async () => {
    const { supply, fill, free, names } = begin(1)
    fill()
    await expect(supply.need(2)).rejects.toMatchObject({ code: 'ENOSPC' })
    free()
    await supply.need(2)
    supply.want(3)
    await rest()
    expect(names()).toEqual(['log-00000002', 'log-00000003'])
  })

  it('is not created after the supply is closed', async () => {
    const { clock, supply, fill, tries, names } = begin(1)
    fill()
    supply.want(2)
    await rest()
    await supply.close()
    clock.advance(10_000)
    supply.want(2)
    await rest()
    expect(tries()).toBe(1)
    expect(names()).toEqual([])
  })

  it('that is being created is finished, or has failed, before the supply is closed', async () => {
    const { supply, names } = begin(1)
    supply.want(2)
    await supply.close()
    expect(names()).toEqual(['log-00000002'])
    const failing = begin(1)
    failing.fill()
    failing.supply.want(2)
    await failing.supply.close()
    failing.clock.advance(10_000)
    await rest()
    expect(failing.tries()).toBe(1)
  })
})
