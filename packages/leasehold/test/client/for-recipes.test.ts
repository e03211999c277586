import { describe, expect, it } from 'vitest'
import { Client } from '../../src/client/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { SeededRandom } from '../../src/testing/index.ts'
import { CountingClock } from './counting-clock.ts'

function open() {
  const clock = new CountingClock()
  const random = new SeededRandom(1)
  const store = memoryStore({ clock })
  return { clock, random, store, client: new Client(store, { clock, random, holder: 'me' }) }
}

describe('a client offers recipes', () => {
  it('is its own clock, random, holder and the guarantees of the store', () => {
    const { clock, random, store, client } = open()
    expect(client.clock).toBe(clock)
    expect(client.random).toBe(random)
    expect(client.holder).toBe('me')
    expect(client.guarantees).toBe(store.guarantees)
    expect(client.store.guarantees).toBe(store.guarantees)
  })

  it('a time that continues while the machine is suspended', async () => {
    const { clock, client } = open()
    const start = client.now()
    await clock.advance(100)
    clock.sleep(1000)
    expect(client.now() - start).toBe(1100)
  })

  it('is a signal that is aborted when the client is closed', async () => {
    const { client } = open()
    expect(client.closing.aborted).toBe(false)
    await client.close()
    expect(client.closing.reason).toMatchObject({ code: 'closed' })
  })

  it('is a way to keep the process running while a promise is waited for', async () => {
    const { clock, client } = open()
    let finish: (value: number) => void = () => {}
    const promise = new Promise<number>((resolve) => {
      finish = resolve
    })
    expect(client.awaited(promise)).toBe(promise)
    expect(clock.keeping).toBe(1)
    finish(5)
    await clock.settle()
    expect(clock.keeping).toBe(0)
  })

  it('a way to report what happened in a recipe', () => {
    const { client } = open()
    const received: unknown[] = []
    client.on('recipe-event', (event) => received.push(event))
    const event = { recipe: 'cache', event: 'failed', key: 'k' } as const
    client.emit(event)
    expect(received).toEqual([event])
  })

  it('the same report under the deprecated name `news`', () => {
    const { client } = open()
    const received: unknown[] = []
    const stop = client.on('news', (event) => received.push(event))
    const event = { recipe: 'cache', event: 'failed', key: 'k' } as const
    client.emit(event)
    stop()
    client.emit(event)
    expect(received).toEqual([event])
  })
})
