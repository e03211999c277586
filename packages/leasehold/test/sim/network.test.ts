import { describe, expect, it } from 'vitest'
import { type LinkFaults, Network, World } from '../../src/testing/index.ts'

const CALM: LinkFaults = { delay: [1, 5], loss: 0, duplication: 0, slow: 0 }

function pair(faults: Partial<LinkFaults>) {
  const world = new World(11)
  const network = new Network(world, { ...CALM, ...faults })
  return { world, network, a: world.node('a'), b: world.node('b') }
}

async function arrivals(faults: Partial<LinkFaults>, messages: number): Promise<number[]> {
  const { world, network, a, b } = pair(faults)
  const heard: number[] = []
  for (let message = 0; message < messages; message++) {
    network.send(a, b, () => heard.push(message))
  }
  await world.run(world.now + 1000)
  return heard
}

describe('Network', () => {
  it('cuts one way without cutting the other, until it heals', async () => {
    const { world, network, a, b } = pair({})
    const heard: string[] = []
    network.cut(a, b)
    network.send(a, b, () => heard.push('b'))
    network.send(b, a, () => heard.push('a'))
    await world.run(world.now + 100)
    expect(heard).toEqual(['a'])
    network.heal(a, b)
    network.send(a, b, () => heard.push('b'))
    await world.run(world.now + 100)
    expect(heard).toEqual(['a', 'b'])
  })

  it('loses, duplicates and reorders messages at the configured rates', async () => {
    expect(await arrivals({}, 200)).toHaveLength(200)
    const lossy = await arrivals({ loss: 0.5 }, 200)
    expect(lossy.length).toBeGreaterThan(60)
    expect(lossy.length).toBeLessThan(140)
    const doubled = await arrivals({ duplication: 0.5 }, 200)
    expect(doubled.length).toBeGreaterThan(250)
    expect(new Set(doubled).size).toBe(200)
    const mixed = await arrivals({}, 200)
    expect(mixed).not.toEqual([...mixed].sort((one, other) => one - other))
  })

  it('keeps a stream in order and without gaps, however many messages are lost on the way', async () => {
    const { world, network, a, b } = pair({ loss: 0.3 })
    const heard: number[] = []
    let broken = 0
    const stream = network.stream(a, b, () => broken++)
    for (let message = 0; message < 100; message++) stream.send(() => heard.push(message))
    await world.run(world.now + 60_000)
    expect(heard).toEqual(Array.from({ length: heard.length }, (_, index) => index))
    expect(heard.length === 100 || broken === 1).toBe(true)
  })

  it('breaks a stream that is cut for long, and notifies its listener', async () => {
    const { world, network, a, b } = pair({})
    let broken = 0
    const stream = network.stream(a, b, () => broken++)
    network.cut(a, b)
    stream.send(() => expect.unreachable())
    await world.run(world.now + 5000)
    expect(broken).toBe(1)
  })
})
