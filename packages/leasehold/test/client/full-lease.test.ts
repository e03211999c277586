import { describe, expect, it } from 'vitest'
import { Attempt, type LeaseSource } from '../../src/client/attempt.ts'
import { ClientCore } from '../../src/client/core.ts'
import { Keeper } from '../../src/client/keeper.ts'
import { settingsOf } from '../../src/client/settings.ts'
import { timingOf } from '../../src/client/timing.ts'
import { LeaseholdError } from '../../src/port/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { TestClock } from '../../src/testing/index.ts'

describe('an attempt that a lease has no room for', () => {
  const full = new LeaseholdError('limit-exceeded', 'full')

  function begin() {
    const clock = new TestClock()
    const store = memoryStore({ clock })
    const settings = settingsOf({ clock })
    const core = new ClientCore(store, settings)
    const timing = timingOf({}, settings, store.guarantees)
    const lease = (id: string) => new Keeper(core, id, timing, clock.now(), true)
    const elsewhere: string[] = []
    const source: LeaseSource = {
      ready: undefined,
      admit: () => {},
      admitElsewhere: (_, keeper) => void elsewhere.push(keeper.lease),
    }
    const errors: LeaseholdError[] = []
    const aim = { source, claims: [{ key: 'k' }], ifFree: false, wait: Infinity, signal: undefined }
    const attempt = new Attempt(
      core,
      aim,
      () => {},
      (error) => errors.push(error),
    ).begin()
    return { core, attempt, lease, elsewhere, errors }
  }

  it('goes elsewhere three times, and fails if it is sent back to the same lease again', () => {
    const { attempt, lease, elsewhere, errors } = begin()
    const same = lease('0.1')
    for (let count = 0; count < 3; count++) attempt.leaseFull(same, full)
    expect([elsewhere, errors]).toEqual([['0.1', '0.1', '0.1'], []])
    attempt.leaseFull(same, full)
    expect([elsewhere.length, errors]).toEqual([3, [full]])
  })

  it('goes elsewhere however many leases have no room', () => {
    const { attempt, lease, elsewhere, errors } = begin()
    for (let count = 0; count < 10; count++) attempt.leaseFull(lease(`0.${count}`), full)
    expect([elsewhere.length, errors]).toEqual([10, []])
  })

  it('fails at once if the client is closed', () => {
    const { core, attempt, lease, elsewhere, errors } = begin()
    core.closed = true
    attempt.leaseFull(lease('0.1'), full)
    expect([elsewhere, errors]).toEqual([[], [full]])
  })
})
