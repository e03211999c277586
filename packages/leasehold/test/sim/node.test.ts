import { describe, expect, it } from 'vitest'
import { World } from '../../src/testing/index.ts'

describe('SimNode', () => {
  it('has a clock that runs at its own rate, from its own beginning', async () => {
    const world = new World(1)
    const fast = world.node('fast', { rate: 1.1, offset: 500 })
    const clock = fast.clock()
    const before = clock.now()
    await world.run(world.now + 1000)
    expect(clock.now() - before).toBeCloseTo(1100, 6)
  })

  it('runs a timer when its own clock has reached the time, never before', async () => {
    const world = new World(3)
    for (let turn = 0; turn < 500; turn++) {
      const rate = world.random.between(0.9, 1.1)
      const node = world.node(`n${turn}`, { rate, offset: world.random.between(0, 1e6) })
      const clock = node.clock()
      const time = clock.now() + world.random.between(0, 50)
      clock.timer(time, () => {
        expect(clock.now()).toBeGreaterThanOrEqual(time)
        expect(clock.now()).toBeLessThan(time + 0.01)
      })
      if (turn % 3 === 0) world.after(10, () => node.suspend(20))
    }
    await world.run(world.now + 200)
  })

  it('does nothing while it is paused, then runs its timers first and its messages after them', async () => {
    const world = new World(1)
    const node = world.node('one')
    const order: string[] = []
    node.pause(100)
    world.after(10, () => node.deliver(() => order.push('message')))
    node.clock().timer(node.clock().now() + 50, () => order.push('timer'))
    await world.run(world.now + 99)
    expect(order).toEqual([])
    await world.run(world.now + 10)
    expect(order).toEqual(['timer', 'message'])
  })

  it('stops while it is suspended, and knows afterwards for how long', async () => {
    const world = new World(1)
    const node = world.node('one')
    const clock = node.clock()
    const before = clock.now()
    node.suspend(5000)
    await world.run(world.now + 6000)
    expect(clock.now() - before).toBeCloseTo(1000, 6)
    expect(clock.asleep()).toBe(5000)
  })

  it('sets no timer for a process that has crashed, even when another was started', async () => {
    const world = new World(1)
    const node = world.node('one')
    const clock = node.clock()
    const called: string[] = []
    node.crash()
    node.start(() => {})
    clock.timer(clock.now() + 10, () => called.push('timer'))
    clock.defer(() => called.push('deferred'))
    await world.run(world.now + 100)
    expect(called).toEqual([])
  })

  it('calls nothing of a process that has crashed, even when another was started', async () => {
    const world = new World(1)
    const node = world.node('one')
    const called: string[] = []
    node.clock().timer(node.clock().now() + 10, () => called.push('timer'))
    world.after(
      10,
      node.guard(() => called.push('guarded')),
    )
    node.onCrash(() => called.push('crash'))
    node.crash()
    node.start(() => called.push('start'))
    await world.run(world.now + 100)
    expect(called).toEqual(['crash', 'start'])
  })

  it('has a wall clock that can be set, which its monotonic clock does not follow', () => {
    const world = new World(1)
    const node = world.node('one')
    const [now, wall] = [node.clock().now(), node.clock().wall()]
    node.setWall(-60_000)
    expect(node.clock().wall()).toBe(wall - 60_000)
    expect(node.clock().now()).toBe(now)
  })
})
