import { describe, expect, it } from 'vitest'
import { Acquisition } from '../../../src/client/acquire/acquire.ts'
import { LeaseSource } from '../../../src/client/acquire/lease-source.ts'
import { ClientCore } from '../../../src/client/core.ts'
import { KeptLease } from '../../../src/client/leases/kept-lease.ts'
import { timingOf } from '../../../src/client/leases/timings.ts'
import { settingsOf } from '../../../src/client/settings.ts'
import { LeaseholdError } from '../../../src/port/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'

describe('an acquisition that a lease has no room for', () => {
  const full = new LeaseholdError('limit-exceeded', 'full')

  function begin() {
    const clock = new TestClock()
    const store = memoryStore({ clock })
    const settings = settingsOf({ clock })
    const core = new ClientCore(store, settings)
    const timing = timingOf({}, settings, store.guarantees)
    const lease = (id: string) => new KeptLease(core, id, timing, clock.now(), true)
    const elsewhere: string[] = []
    const source = new LeaseSource(core, timing)
    source.admit = (acquisition) => acquisition.later()
    source.admitElsewhere = (_, { id }) => void elsewhere.push(id)
    const errors: LeaseholdError[] = []
    const acquisition = new Acquisition(core, source, [{ key: 'k' }], {}, false, core.limit)
    const settled = acquisition.start().catch((error) => errors.push(error))
    return { core, acquisition, lease, elsewhere, errors, settled }
  }

  it('tries another lease three times, and fails if it gets the same lease again', async () => {
    const { acquisition, lease, elsewhere, errors, settled } = begin()
    const same = lease('0.1')
    for (let count = 0; count < 3; count++) acquisition.onLeaseFull(same, full)
    expect([elsewhere, errors]).toEqual([['0.1', '0.1', '0.1'], []])
    acquisition.onLeaseFull(same, full)
    await settled
    expect([elsewhere.length, errors]).toEqual([3, [full]])
  })

  it('goes elsewhere however many leases have no room', () => {
    const { acquisition, lease, elsewhere, errors } = begin()
    for (let count = 0; count < 10; count++) acquisition.onLeaseFull(lease(`0.${count}`), full)
    expect([elsewhere.length, errors]).toEqual([10, []])
  })

  it('fails at once if the client is closed', async () => {
    const { core, acquisition, lease, elsewhere, errors, settled } = begin()
    core.closed = true
    acquisition.onLeaseFull(lease('0.1'), full)
    await settled
    expect([elsewhere, errors]).toEqual([[], [full]])
  })
})
