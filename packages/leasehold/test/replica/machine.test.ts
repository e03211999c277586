import { beforeEach, describe, expect, it } from 'vitest'
import { DEFAULT_LIMITS } from '../../src/port/index.ts'
import type { Command, Entry } from '../../src/replica/entry.ts'
import { Machine } from '../../src/replica/state/machine.ts'

const NOBODY = { holds() {}, removed() {}, capped() {}, gone() {} }
const limits = { ...DEFAULT_LIMITS, history: 16 }
const GRANT: Command = { do: 'grant', request: { holder: 'h', ttl: 1000, claims: [{ key: 'k' }] } }
/** A renewal of the lease in slot 0 by a member that counts this much left of its life. */
const renew = (lifeLeft = Infinity): Command => ({
  ...{ do: 'renew', slots: [0], ids: [] },
  lives: new Map(lifeLeft === Infinity ? [] : [[0, lifeLeft]]),
})
const JOIN: Command = { do: 'join', semantics: 1 }
const INITIALIZE: Command = { do: 'initialize', limits, above: 0, semantics: 1 }

let machine: Machine
let position: number
let sequences: Map<string, number>

/** An entry of a member that has applied everything, with these differences. */
function entry(
  member: string,
  commands: readonly Command[],
  different: Partial<Entry> = {},
): Entry {
  const sequence = (sequences.get(member) ?? 0) + 1
  sequences.set(member, sequence)
  const revision = machine.isInitialized ? machine.kernel.revision : 0
  const { epoch, position: asOf, history, checksum } = machine
  const own = { epoch: epoch || 'e', member, sequence, asOf, revision, time: 1000 }
  return { ...own, history: history.value, checksum: checksum.value, commands, ...different }
}

const apply = (one: Entry) => machine.apply(one, ++position, position)
const leases = () => machine.kernel.leases
const join = (member: string) => apply(entry(member, [JOIN]))

beforeEach(() => {
  machine = new Machine(NOBODY)
  position = 0
  sequences = new Map()
  apply(entry('a', [INITIALIZE, JOIN]))
})

describe('an entry', () => {
  it('counts once, however many copies are in the log', () => {
    const one = entry('a', [GRANT])
    expect(apply(one)).toMatchObject({ outcome: 'applied', answers: [{ outcome: 'granted' }] })
    expect(apply(one)).toEqual({ outcome: 'repeated' })
    apply(entry('a', []))
    expect(apply(one)).toEqual({ outcome: 'repeated' })
    expect(leases()).toBe(1)
  })

  it('is ignored if it is of an earlier epoch, or if its author has not joined', () => {
    apply(entry('a', [{ do: 'recover', above: 10 }]))
    expect(apply(entry('a', [GRANT], { epoch: 'e' }))).toEqual({ outcome: 'ignored' })
    expect(apply(entry('b', [GRANT]))).toEqual({ outcome: 'ignored' })
    join('b')
    expect(apply(entry('b', [GRANT]))).toMatchObject({ outcome: 'applied' })
    expect(leases()).toBe(1)
  })

  it('initializes only an empty log', () => {
    const second = entry('b', [INITIALIZE, JOIN], { epoch: 'other' })
    expect(apply(second)).toEqual({ outcome: 'ignored' })
    expect(machine.epoch).toBe('e')
  })

  it('shows by its checksum that its author has another state', () => {
    apply(entry('a', [GRANT]))
    const wrong = machine.checksum.value ^ 1
    const checksum = machine.checksum.value
    expect(apply(entry('a', [GRANT], { checksum: wrong }))).toEqual({
      outcome: 'disputed',
      checksum,
    })
    expect(leases()).toBe(1)
  })
})

describe('an entry whose author has read another log', () => {
  it.each([
    ['an epoch that this log never had', { epoch: 'other' }],
    ['a position that this log has not reached', { asOf: 1000 }],
    ['another hash at a position', { history: 1 }],
  ])('is not applied (%s)', (_what, different) => {
    expect(apply(entry('a', [GRANT], different))).toEqual({ outcome: 'diverged' })
    expect(leases()).toBe(0)
  })

  it('is not applied if the mark of its position is no longer kept', () => {
    const late = entry('a', [GRANT])
    join('b')
    for (let count = 0; count < 1030; count++) apply(entry('b', []))
    expect(apply(late)).toEqual({ outcome: 'stale' })
    expect(leases()).toBe(0)
  })
})

describe('a recovery', () => {
  it('raises revisions, starts an epoch, and makes all others join again', () => {
    join('b')
    apply(entry('a', [GRANT]))
    apply(entry('b', [{ do: 'recover', above: 500 }]))
    expect(machine).toMatchObject({ epoch: 'b', floor: 500 })
    expect(machine.members.has('a')).toBe(false)
    expect(machine.members.has('b')).toBe(true)
    apply(entry('b', [GRANT]))
    expect(machine.kernel.revision).toBe(501)
  })

  it('counts as a renewal of every lease', () => {
    join('b')
    apply(entry('a', [GRANT]))
    apply(entry('b', [{ do: 'recover', above: 500 }]))
    expect(machine.renewedPosition(0)).toBe(position)
  })
})

describe('the version of the lease rules', () => {
  it('changes only when every member knows the new one', () => {
    machine = new Machine(NOBODY, 2)
    apply(entry('x', [INITIALIZE, { do: 'join', semantics: 2 }]))
    join('old')
    apply(entry('x', [{ do: 'upgrade', semantics: 2 }]))
    expect(machine.semantics).toBe(1)
    apply(entry('old', [{ do: 'leave' }]))
    expect(machine.members.proposals('x', -1, 1)).toEqual([{ do: 'upgrade', semantics: 2 }])
    apply(entry('x', [{ do: 'upgrade', semantics: 2 }]))
    expect(machine.semantics).toBe(2)
  })

  it('stops a process that does not know it', () => {
    machine = new Machine(NOBODY, 1)
    const newer: Command = { ...INITIALIZE, semantics: 2 } as Command
    expect(() => apply(entry('x', [newer, JOIN]))).toThrow('update this process')
  })
})

describe('a member', () => {
  it('that was removed does not join again by a late copy of its first entry', () => {
    const first = entry('b', [JOIN])
    const second = entry('b', [GRANT])
    apply(first)
    apply(second)
    apply(entry('a', [{ do: 'expel', members: ['b'] }]))
    expect(machine.members.has('b')).toBe(false)
    expect(apply(first)).toEqual({ outcome: 'ignored' })
    expect(apply(second)).toEqual({ outcome: 'ignored' })
    expect(leases()).toBe(1)
    expect(join('c')).toMatchObject({ outcome: 'applied' })
  })

  it('is not expelled if it has written since', () => {
    join('b')
    const proposal = entry('a', [{ do: 'expel', members: ['b'] }])
    apply(entry('b', []))
    apply(proposal)
    expect(machine.members.has('b')).toBe(true)
  })

  it('leaves when it announces it', () => {
    join('b')
    apply(entry('b', [{ do: 'leave' }]))
    expect(machine.members.has('b')).toBe(false)
  })
})

describe('a proposal that a lease has ended', () => {
  it('ends the lease and its claims', () => {
    apply(entry('a', [GRANT]))
    apply(entry('a', [{ do: 'expire', slots: [0], cause: 'ttl' }]))
    expect(leases()).toBe(0)
  })

  it('has no effect if the lease was renewed after the last entry that the proposer had applied', () => {
    join('b')
    apply(entry('a', [GRANT]))
    const proposal = entry('b', [{ do: 'expire', slots: [0], cause: 'ttl' }])
    apply(entry('a', [renew()]))
    apply(proposal)
    expect(leases()).toBe(1)
    apply(entry('b', [{ do: 'expire', slots: [0], cause: 'ttl' }]))
    expect(leases()).toBe(0)
  })

  it('has no effect if another lease has the slot now', () => {
    join('b')
    apply(entry('a', [GRANT]))
    const proposal = entry('b', [{ do: 'expire', slots: [0], cause: 'ttl' }])
    apply(entry('a', [{ do: 'revoke', request: { target: { lease: '0.1' } } }, GRANT]))
    expect(machine.kernel.bySlot.born(0)).toBeGreaterThan(1)
    apply(proposal)
    expect(leases()).toBe(1)
  })

  it('is not delayed by a renewal of a lease whose life is over', () => {
    join('b')
    const request = { holder: 'h', ttl: 400, maxLife: 500 }
    apply(entry('a', [{ do: 'grant', request }], { time: 1000 }))
    const proposal = entry('b', [{ do: 'expire', slots: [0], cause: 'ttl' }], { time: 1500 })
    apply(entry('a', [renew(0)], { time: 1500 }))
    expect(leases()).toBe(1)
    apply(proposal)
    expect(leases()).toBe(0)
  })
})

describe('a renewal', () => {
  it('of a slot that another lease has now renews nothing', () => {
    join('b')
    apply(entry('a', [GRANT]))
    const late = entry('b', [renew()], { time: 3000 })
    apply(entry('a', [{ do: 'revoke', request: { target: { lease: '0.1' } } }, GRANT]))
    apply(late)
    expect(machine.kernel.bySlot.renewedAt(0)).toBe(1000)
  })
})

describe('the time of the log', () => {
  it('never goes back', () => {
    apply(entry('a', [], { time: 5000 }))
    apply(entry('a', [], { time: 4000 }))
    expect(machine.time).toBe(5000)
  })
})
