import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { Client } from '../../src/client/index.ts'
import { onAbort, sleep, unlessAborted } from '../../src/recipes/sleep.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { CountingClock } from '../client/counting-clock.ts'

function open() {
  const clock = new CountingClock()
  return { clock, client: new Client(memoryStore({ clock }), { clock }) }
}

/** The state of a promise, with its value or error if it is settled. */
function watched(promise: Promise<unknown>) {
  const outcome: { value?: unknown; error?: unknown; settled: boolean } = { settled: false }
  promise.then(
    (value) => Object.assign(outcome, { value, settled: true }),
    (error) => Object.assign(outcome, { error, settled: true }),
  )
  return outcome
}

const listeners = (signal: AbortSignal) => getEventListeners(signal, 'abort').length

describe('a sleep', () => {
  it('ends after its time, and keeps the process running until then', async () => {
    const { clock, client } = open()
    const outcome = watched(sleep(client, 100))
    expect([...clock.timers]).toEqual([{ keepsRunning: true }])
    await clock.advance(99)
    expect(outcome.settled).toBe(false)
    await clock.advance(1)
    expect(outcome).toEqual({ value: undefined, settled: true })
  })

  it('ends early if its callback is called, and leaves no timer', async () => {
    const { clock, client } = open()
    let done = () => {}
    const outcome = watched(sleep(client, 100, undefined, (settle) => (done = settle)))
    done()
    await clock.settle()
    expect(outcome).toEqual({ value: undefined, settled: true })
    expect(clock.timers.size).toBe(0)
  })

  it('of infinite length sets no timer and ends only by its callback', async () => {
    const { clock, client } = open()
    let done = () => {}
    const outcome = watched(sleep(client, Infinity, undefined, (settle) => (done = settle)))
    expect(clock.timers.size).toBe(0)
    await clock.advance(1e9)
    expect(outcome.settled).toBe(false)
    done()
    await clock.settle()
    expect(outcome).toEqual({ value: undefined, settled: true })
  })

  it('fails with the reason of its signal, at once, and leaves no timer and no listener', async () => {
    const { clock, client } = open()
    const controller = new AbortController()
    const outcome = watched(sleep(client, 100, controller.signal))
    controller.abort('enough')
    await clock.settle()
    expect(outcome).toEqual({ error: 'enough', settled: true })
    expect(clock.timers.size).toBe(0)
    expect(listeners(controller.signal) + listeners(client.closing)).toBe(0)
  })

  it('fails when the client is closed', async () => {
    const { clock, client } = open()
    const outcome = watched(sleep(client, 100))
    await client.close()
    await clock.settle()
    expect(outcome).toMatchObject({ error: { code: 'closed' } })
    await expect(sleep(client, 100)).rejects.toMatchObject({ code: 'closed' })
  })
})

describe('a promise that signals can end', () => {
  it('settles like the promise, and leaves no listener', async () => {
    const { signal } = new AbortController()
    expect(await unlessAborted([signal, undefined], Promise.resolve(5))).toBe(5)
    const failed = unlessAborted([signal], Promise.reject(new Error('bad')))
    await expect(failed).rejects.toThrowError('bad')
    await new Promise((resolve) => setImmediate(resolve))
    expect(listeners(signal)).toBe(0)
  })
})

describe('a listener on several signals', () => {
  it('is called once, with the reason of the first aborted signal', () => {
    const [a, b] = [new AbortController(), new AbortController()]
    const reasons: unknown[] = []
    onAbort([a.signal, undefined, b.signal], (reason) => reasons.push(reason))
    b.abort('b')
    a.abort('a')
    expect(reasons).toEqual(['b'])
    expect(listeners(a.signal) + listeners(b.signal)).toBe(0)
  })

  it('is called at once if one is already aborted, and ignores the others', () => {
    const [a, b] = [new AbortController(), new AbortController()]
    const reasons: unknown[] = []
    const aborted = [AbortSignal.abort('first'), AbortSignal.abort('second')]
    onAbort([a.signal, ...aborted, b.signal], (reason) => reasons.push(reason))
    expect(reasons).toEqual(['first'])
    expect(listeners(a.signal) + listeners(b.signal)).toBe(0)
  })

  it('is not called after its caller stops it', () => {
    const controller = new AbortController()
    const reasons: unknown[] = []
    const stop = onAbort([controller.signal], (reason) => reasons.push(reason))
    expect(listeners(controller.signal)).toBe(1)
    stop()
    controller.abort()
    expect(reasons).toEqual([])
  })
})
