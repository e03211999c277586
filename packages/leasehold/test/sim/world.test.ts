import { describe, expect, it } from 'vitest'
import { World } from '../../src/testing/index.ts'

describe('World', () => {
  it('has things happen in the order of their times, and in that of asking at the same time', async () => {
    const world = new World(1)
    const order: string[] = []
    const begin = world.now
    world.at(begin + 20, () => order.push('third'))
    world.at(begin + 10, () => {
      order.push('first')
      world.after(0, () => order.push('asked for at that instant'))
    })
    world.at(begin + 10, () => order.push('second'))
    await world.run(begin + 100)
    expect(order).toEqual(['first', 'second', 'asked for at that instant', 'third'])
    expect(world.now).toBe(begin + 100)
  })

  it('lets every promise settle before the next event', async () => {
    const world = new World(1)
    const order: string[] = []
    world.after(1, async () => {
      for (let turn = 0; turn < 50; turn++) await Promise.resolve()
      order.push('settled')
    })
    world.after(1, () => order.push('next'))
    await world.run(world.now + 2)
    expect(order).toEqual(['settled', 'next'])
  })

  it('does not run cancelled events, nor events after the end', async () => {
    const world = new World(1)
    const done: string[] = []
    world.after(1, () => done.push('cancelled')).cancel()
    world.after(3, () => done.push('beyond'))
    await world.run(world.now + 2)
    expect(done).toEqual([])
    await world.run(world.now + 2)
    expect(done).toEqual(['beyond'])
  })

  it('ends with the error of an event', async () => {
    const world = new World(1)
    world.after(1, () => {
      throw new Error('broken')
    })
    await expect(world.run(world.now + 10)).rejects.toThrow('broken')
  })

  it('fails if time stands still', async () => {
    const world = new World(7)
    const again = (): void => {
      world.after(0, again)
    }
    world.after(5, again)
    await expect(world.run(world.now + 10)).rejects.toThrow(
      /time stands still 5\.0000 ms after the beginning of seed 7.* the next is again/,
    )
  })

  it('has the same history for the same seed, and another for another', async () => {
    const history = async (seed: number): Promise<number> => {
      const world = new World(seed)
      const step = (): void => {
        world.note('one', 'steps')
        world.after(world.random.between(1, 10), step)
      }
      step()
      await world.run(world.now + 1000)
      return world.hash
    }
    expect(await history(5)).toBe(await history(5))
    expect(await history(5)).not.toBe(await history(6))
  })

  it('reports its events if it is traced', async () => {
    const world = new World(1, { trace: true })
    world.after(1500, () => world.note('ann', 'holds', () => 'job'))
    await world.run(world.now + 2000)
    expect(world.trace).toEqual(['   1.5000 s  ann      holds  job'])
  })
})
