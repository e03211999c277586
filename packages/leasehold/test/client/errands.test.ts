import { describe, expect, it } from 'vitest'
import { carryOut, type Errand } from '../../src/client/call.ts'
import { ClientCore } from '../../src/client/core.ts'
import { closedError } from '../../src/client/loss.ts'
import { settingsOf } from '../../src/client/settings.ts'
import { LeaseholdError } from '../../src/port/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { CountingClock } from './counting-clock.ts'
import { FaultyStore } from './faulty-store.ts'

/** How one send ends: after how many milliseconds, and with what error if any. */
interface Send {
  readonly after: number
  readonly error?: LeaseholdError
}

const UNKNOWN = new LeaseholdError('unknown-outcome', 'broken')
const REFUSED = new LeaseholdError('lease-ended', 'gone')

/** An errand whose sends end as they are given, and then never; it notes what it is told. */
function open(sends: readonly Send[], rest: Partial<Errand<string>> = {}) {
  const clock = new CountingClock()
  const random = { next: () => 1, id: () => 'id' }
  const store = new FaultyStore(memoryStore({ clock }), clock)
  const core = new ClientCore(store, settingsOf({ clock, random, callTimeout: 1000 }))
  const start = clock.now()
  const told: string[] = []
  const note = (what: string) => void told.push(`${what} ${clock.now() - start}`)
  let sent = 0
  const errand: Errand<string> = {
    repeatable: true,
    pointless: false,
    send: () => {
      note('send')
      const send = sends[sent++]
      return new Promise((resolve, reject) => {
        if (send === undefined) return
        const { after, error } = send
        clock.timer(clock.now() + after, () => (error ? reject(error) : resolve('answer')))
      })
    },
    answered: () => note('answered'),
    failed: ({ code }) => note(`failed ${code}`),
    overdue: ({ code }) => note(`overdue ${code}`),
    ...rest,
  }
  carryOut(core, errand)
  return { clock, core, told }
}

describe('an errand', () => {
  it('is answered once, although two sends are answered', async () => {
    const { clock, told } = open([{ after: 1200 }, { after: 100 }])
    await clock.advance(10_000)
    expect(told).toEqual(['send 0', 'send 1050', 'answered 1150'])
  })

  it('does not fail after it was answered', async () => {
    const { clock, told } = open([{ after: 1200, error: REFUSED }, { after: 100 }])
    await clock.advance(10_000)
    expect(told).toEqual(['send 0', 'send 1050', 'answered 1150'])
  })

  it('is not answered after it failed', async () => {
    const { clock, told } = open([{ after: 1200 }, { after: 100, error: REFUSED }])
    await clock.advance(10_000)
    expect(told).toEqual(['send 0', 'send 1050', 'failed lease-ended 1150'])
  })

  it('fails at once if an answer is of no use any more', async () => {
    const { clock, told } = open([{ after: 100, error: UNKNOWN }], { pointless: true })
    await clock.advance(10_000)
    expect(told).toEqual(['send 0', 'failed unknown-outcome 100'])
  })

  it('is told once that it is overdue, and may be answered after that', async () => {
    const sends = [0, 1, 2, 3].map(() => ({ after: 0, error: UNKNOWN }))
    const { clock, told } = open([...sends, { after: 0 }])
    await clock.advance(60_000)
    expect(told.filter((what) => !what.startsWith('send'))).toEqual([
      'overdue unknown-outcome 150',
      'answered 750',
    ])
  })

  it('is not sent again when the client is closed, and keeps nothing running', async () => {
    const { clock, core, told } = open([{ after: 0, error: UNKNOWN }])
    await clock.advance(10)
    core.timeouts.stop(closedError())
    await clock.advance(10_000)
    expect(told).toEqual(['send 0', 'overdue closed 10', 'failed closed 10'])
    expect(clock.keeping).toBe(0)
  })

  it('takes an answer that comes after the client was closed', async () => {
    const { clock, core, told } = open([{ after: 500 }])
    await clock.advance(10)
    core.timeouts.stop(closedError())
    expect(clock.keeping).toBe(0)
    await clock.advance(10_000)
    expect(told).toEqual(['send 0', 'overdue closed 10', 'answered 500'])
  })

  it('fails if it fails after the client was closed', async () => {
    const { clock, core, told } = open([{ after: 500, error: UNKNOWN }])
    core.closed = true
    await clock.advance(10_000)
    expect(told).toEqual(['send 0', 'failed unknown-outcome 500'])
  })
})
