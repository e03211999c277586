import { describe, expect, it } from 'vitest'
import { ClientCore } from '../../../src/client/core.ts'
import { settingsOf } from '../../../src/client/settings.ts'
import { closedError, StoreCall } from '../../../src/client/store-calls/index.ts'
import { LeaseholdError } from '../../../src/port/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { CountingClock } from '../counting-clock.ts'
import { FaultyStore } from '../faulty-store.ts'

/** How one send ends: after how many milliseconds, and with which error. */
interface Send {
  readonly after: number
  readonly error?: LeaseholdError
}

const UNKNOWN = new LeaseholdError('unknown-outcome', 'broken')
const REFUSED = new LeaseholdError('lease-ended', 'gone')

/** A call whose sends end as given, and then never. It records its notifications. */
function open(sends: readonly Send[], pointless = false) {
  const clock = new CountingClock()
  const random = { next: () => 1, id: () => 'id' }
  const store = new FaultyStore(memoryStore({ clock }), clock)
  const core = new ClientCore(store, settingsOf({ clock, random, callTimeout: 1000 }))
  const start = clock.now()
  const notes: string[] = []
  const note = (what: string) => void notes.push(`${what} ${clock.now() - start}`)
  let sent = 0
  class Call extends StoreCall<string> {
    readonly repeatable = true
    readonly pointless = pointless

    send(): Promise<string> {
      note('send')
      const send = sends[sent++]
      return new Promise((resolve, reject) => {
        if (send === undefined) return
        const { after, error } = send
        clock.timer(clock.now() + after, () => (error ? reject(error) : resolve('answer')))
      })
    }

    answered(): undefined {
      note('answered')
    }

    failed({ code }: LeaseholdError): undefined {
      note(`failed ${code}`)
    }

    overdue({ code }: LeaseholdError): undefined {
      note(`overdue ${code}`)
    }
  }
  void new Call(core).start()
  return { clock, core, notes }
}

describe('a call to the store', () => {
  it('is answered once, although two sends are answered', async () => {
    const { clock, notes } = open([{ after: 1200 }, { after: 100 }])
    await clock.advance(10_000)
    expect(notes).toEqual(['send 0', 'send 1050', 'answered 1150'])
  })

  it('does not fail after it was answered', async () => {
    const { clock, notes } = open([{ after: 1200, error: REFUSED }, { after: 100 }])
    await clock.advance(10_000)
    expect(notes).toEqual(['send 0', 'send 1050', 'answered 1150'])
  })

  it('is not answered after it failed', async () => {
    const { clock, notes } = open([{ after: 1200 }, { after: 100, error: REFUSED }])
    await clock.advance(10_000)
    expect(notes).toEqual(['send 0', 'send 1050', 'failed lease-ended 1150'])
  })

  it('fails at once if an answer is no longer useful', async () => {
    const { clock, notes } = open([{ after: 100, error: UNKNOWN }], true)
    await clock.advance(10_000)
    expect(notes).toEqual(['send 0', 'failed unknown-outcome 100'])
  })

  it('is overdue once, and may be answered after that', async () => {
    const sends = [0, 1, 2, 3].map(() => ({ after: 0, error: UNKNOWN }))
    const { clock, notes } = open([...sends, { after: 0 }])
    await clock.advance(60_000)
    expect(notes.filter((what) => !what.startsWith('send'))).toEqual([
      'overdue unknown-outcome 150',
      'answered 750',
    ])
  })

  it('is not sent again when the client is closed, and keeps nothing running', async () => {
    const { clock, core, notes } = open([{ after: 0, error: UNKNOWN }])
    await clock.advance(10)
    core.timeouts.stop(closedError())
    await clock.advance(10_000)
    expect(notes).toEqual(['send 0', 'overdue closed 10', 'failed closed 10'])
    expect(clock.keeping).toBe(0)
  })

  it('accepts an answer after the client was closed', async () => {
    const { clock, core, notes } = open([{ after: 500 }])
    await clock.advance(10)
    core.timeouts.stop(closedError())
    expect(clock.keeping).toBe(0)
    await clock.advance(10_000)
    expect(notes).toEqual(['send 0', 'overdue closed 10', 'answered 500'])
  })

  it('fails if it fails after the client was closed', async () => {
    const { clock, core, notes } = open([{ after: 500, error: UNKNOWN }])
    core.closed = true
    await clock.advance(10_000)
    expect(notes).toEqual(['send 0', 'failed unknown-outcome 500'])
  })
})
