import {
  LeaseholdError as OtherError,
  Leasehold as OtherLeasehold,
  isLeaseholdError as otherIs,
} from 'leasehold'
import { memoryStore } from 'leasehold/memory'
import { TestClock } from 'leasehold/testing'
import { describe, expect, it } from 'vitest'
import { isLeaseholdError, Leasehold, LeaseholdError } from '../../src/index.ts'
import { memoryStore as ownStore } from '../../src/stores/memory/index.ts'

// The built package and the sources are two copies, each with its own classes.
describe('two copies of the package in one process', () => {
  it('know the errors of each other', () => {
    const [own, other] = [new LeaseholdError('lost', 'm'), new OtherError('lost', 'm')]
    expect(OtherError).not.toBe(LeaseholdError)
    for (const is of [isLeaseholdError, otherIs]) {
      expect([is(own, 'lost'), is(other, 'lost'), is(other, 'lapsed')]).toEqual([true, true, false])
    }
    expect(other).toBeInstanceOf(LeaseholdError)
    for (const stranger of [new Error('m'), undefined, null, { code: 'lost' }, 'lost']) {
      expect(isLeaseholdError(stranger)).toBe(false)
      expect(stranger).not.toBeInstanceOf(LeaseholdError)
    }
  })

  it.each([
    ['ours', Leasehold, memoryStore],
    ['theirs', OtherLeasehold as unknown as typeof Leasehold, ownStore as typeof memoryStore],
  ])('pass refusals from a store to a client (%s)', async (_, Client, store) => {
    const clock = new TestClock()
    const leasehold = await Client.open(store({ clock }), { clock })
    await expect(leasehold.lock('k'.repeat(10_000))).rejects.toMatchObject({
      code: 'invalid-argument',
    })
    const lock = await leasehold.lock('k')
    await expect(leasehold.lock('k', { within: lock })).resolves.toMatchObject({ held: true })
    const sessions = leasehold.sessions('s')
    const session = await sessions.create({ data: 1 })
    await sessions.end(session.id)
    await expect(session.save(2)).rejects.toMatchObject({ code: 'lease-ended' })
    await leasehold.close()
    await expect(leasehold.lock('k')).rejects.toMatchObject({ code: 'closed' })
  })
})
