import { describe, expect, it } from 'vitest'
import { Leasehold } from '../../../src/index.ts'
import { testStore } from '../../../src/testing/index.ts'
import { FaultyStore } from '../../client/faulty-store.ts'

async function opened() {
  const { store, clock } = testStore()
  const open = (holder: string) => Leasehold.open(store, { holder, clock })
  return { store, clock, a: await open('a'), b: await open('b') }
}

describe('once', () => {
  it('does not remember work that failed', async () => {
    const { a } = await opened()
    await expect(
      a.once('job', () => {
        throw new Error('disk full')
      }),
    ).rejects.toThrow('disk full')
    expect(await a.onceResult('job')).toBeUndefined()
    expect(await a.once('job', () => 'second try')).toMatchObject({ ran: true })
  })

  it('does not remember work whose lock was lost before it ended', async () => {
    const { a, clock } = await opened()
    const lost = a.once(
      'job',
      () => {
        clock.stall(60_000)
        return 'late'
      },
      { ttl: '10s' },
    )
    await expect(lost).rejects.toMatchObject({ code: 'lost' })
    expect(await a.onceResult('job')).toBeUndefined()
  })

  it('remembers for as long as `keep` says, and then runs again', async () => {
    const { a, b, clock } = await opened()
    const first = await a.once('job', () => 1, { keep: '1h' })
    expect(first.until - first.at).toBe(3_600_000)
    await clock.advance(3_599_000)
    expect(await b.once('job', () => 2, { keep: '1h' })).toMatchObject({ ran: false, by: 'a' })
    await clock.advance(2000)
    expect(await b.once('job', () => 2, { keep: '1h' })).toMatchObject({ ran: true, by: 'b' })
  })

  it('gives everybody the first result that was stored', async () => {
    const { a, b, store } = await opened()
    // Somebody stores a result without the lock, as a process does that lost it in the last moment.
    const done = await a.once('job', async () => {
      const claims = [{ key: 'once/done/job', value: '"theirs"' }]
      await store.grant({ holder: 'late', ttl: 60_000, claims })
      return 'mine'
    })
    expect(done).toMatchObject({ ran: true, result: 'theirs', by: 'late' })
    expect(await b.once('job', () => 'another')).toMatchObject({ ran: false, result: 'theirs' })
  })

  it('waits for the answer of each call no longer than `timeout`', async () => {
    const { store, clock } = testStore()
    const link = new FaultyStore(store, clock)
    const leasehold = await Leasehold.open(link, { holder: 'a', clock })
    link.freeze()
    let code: string | undefined
    leasehold
      .once('job', () => 1, { timeout: '300ms' })
      .catch((error) => {
        code = error.code
      })
    await clock.advance(300)
    expect(code).toBe('timeout')
  })

  it('waits no longer than `wait`, and names the holder', async () => {
    const { a, b, clock } = await opened()
    const running = a.once('job', () => new Promise(() => {}))
    running.catch(() => {})
    await clock.advance(10)
    const waiting = b.once('job', () => 1, { wait: '2s' })
    const failed = expect(waiting).rejects.toThrow(/"a"/)
    await clock.advance(2100)
    await failed
  })

  it.each<[string, string, unknown, RegExp, object?]>([
    ['an empty name', '', () => 1, /the name is ""/],
    ['work that is not a function', 'job', 5, /the work of job is 5: give a function/],
    ['a result that JSON cannot hold', 'job', () => 1n, /the result cannot be written as JSON/],
    ['a keep that is not a duration', 'job', () => 1, /keep is "soon"/, { keep: 'soon' }],
  ])('refuses %s', async (_what, name, work, message, options = {}) => {
    const { a } = await opened()
    await expect(a.once(name, work as () => 1, options)).rejects.toThrow(message)
  })
})
