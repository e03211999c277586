import { KEYS, OLDEST } from './command.ts'

/** The parts of fast-check that are used. It is passed in, so that this package does not depend on it. */
export interface FastCheck {
  constantFrom(...values: readonly unknown[]): unknown
  integer(range: { min: number; max: number }): unknown
  record(fields: never, constraints: { requiredKeys: never }): unknown
  oneof(...choices: readonly never[]): unknown
  array(each: never, constraints: { minLength?: number; maxLength?: number }): unknown
  uniqueArray(each: never, constraints: object): unknown
}

export interface SequenceOptions {
  /** The maximum number of commands. Default: 40. */
  readonly length?: number | undefined
  /** Times are multiples of this, in milliseconds: small steps make deadlines coincide. Default: 10. */
  readonly step?: number | undefined
  /** Distributes the commands to this many stores, and watches leases through each: makes `Turn`s. */
  readonly stores?: number | undefined
}

/**
 * Random sequences of commands, as an arbitrary of the caller's fast-check. Only the caller knows
 * its type:
 *
 * ```ts
 * const sequences: fc.Arbitrary<Command[]> = commandSequences(fc)
 * await fc.assert(fc.asyncProperty(sequences, (commands) => compareWithKernel(open, commands)))
 * ```
 */
export function commandSequences<A>(fc: FastCheck, options: SequenceOptions = {}): A {
  const { length = 40, step = 10 } = options
  const make = fc as unknown as Maker
  const commands = weighted(make, [...callCommands(make, step), [4, passing(make, step)]])
  const turns = options.stores === undefined ? commands : dealt(make, commands, options.stores)
  // Without a size, fast-check prefers lists that are too short for anything to happen: a notice takes a
  // lease, a watch, two claims and an end.
  const minLength = options.stores === undefined ? 1 : length / 2
  return make.array(turns, { minLength, maxLength: length, size: 'max' }) as A
}

/** The commands that are calls of a store, each with its weight. */
export function callCommands(make: Maker, step: number): [number, unknown][] {
  return [
    [5, grants(make, step)],
    [6, claims(make)],
    [4, releases(make)],
    [2, replacements(make)],
    [1, updates(make)],
    [2, revokes(make, step)],
    [2, renewals(make)],
    [2, reads(make)],
    [1, record(make, { do: make.constantFrom('repeat'), at: recent(make) }, ['do', 'at'])],
  ]
}

function dealt(make: Maker, commands: unknown, stores: number): unknown {
  const store = make.integer({ min: 0, max: stores - 1 })
  const turn = { do: make.constantFrom('turn'), store, command: commands }
  const watch = { do: make.constantFrom('watch'), store, lease: recent(make) }
  return weighted(make, [
    [5, record(make, turn, Object.keys(turn))],
    [1, record(make, watch, Object.keys(watch))],
  ])
}

/** fast-check without its types, which we cannot import. */
export interface Maker {
  constantFrom(...values: readonly unknown[]): unknown
  integer(range: { min: number; max: number }): unknown
  record(fields: object, constraints: { requiredKeys: readonly string[] }): unknown
  oneof(...choices: readonly unknown[]): unknown
  array(each: unknown, constraints: object): unknown
  uniqueArray(each: unknown, constraints: object): unknown
}

export function record(make: Maker, fields: object, requiredKeys: readonly string[]): unknown {
  return make.record(fields, { requiredKeys })
}

export function weighted(make: Maker, choices: readonly [number, unknown][]): unknown {
  return make.oneof(...choices.map(([weight, arbitrary]) => ({ weight, arbitrary })))
}

export function recent(make: Maker): unknown {
  return make.integer({ min: 0, max: OLDEST })
}

function places(make: Maker): unknown {
  const exclusive = record(
    make,
    { key: make.constantFrom(...KEYS), value: make.constantFrom('', 'x', 'ü') },
    ['key'],
  )
  const shared = record(
    make,
    {
      key: make.constantFrom(...KEYS),
      mode: make.constantFrom('shared'),
      limit: make.integer({ min: 1, max: 3 }),
    },
    ['key', 'mode'],
  )
  return make.uniqueArray(make.oneof(exclusive, shared), {
    minLength: 1,
    maxLength: 3,
    selector: ({ key }: { key: string }) => key,
  })
}

/** An optional field that is rarely present: most calls have no request id and are not tries. */
function seldom(make: Maker): unknown {
  return make.constantFrom(true, false, false)
}

function grants(make: Maker, step: number): unknown {
  const times = (most: number) => make.constantFrom(...multiples(step, most))
  return record(
    make,
    {
      do: make.constantFrom('grant'),
      holder: make.constantFrom('alice', 'bob'),
      ttl: make.constantFrom(...multiples(step, 6), Infinity),
      grace: times(3),
      maxLife: make.constantFrom(...multiples(step, 6).map((ms) => ms + 6 * step), Infinity),
      // An optional field is mostly present; and nothing is made under a lease that never existed.
      parent: make.constantFrom(...Array(6), 0, 1, 2, OLDEST),
      labels: make.constantFrom(undefined, undefined, { zone: 'ü', team: '' }),
      claims: places(make),
      ifFree: seldom(make),
      request: seldom(make),
    },
    ['do', 'holder', 'ttl'],
  )
}

export function multiples(step: number, most: number): number[] {
  return Array.from({ length: most }, (_, at) => (at + 1) * step)
}

function claims(make: Maker): unknown {
  return record(
    make,
    {
      do: make.constantFrom('claim'),
      lease: recent(make),
      claims: places(make),
      ifFree: seldom(make),
      request: seldom(make),
    },
    ['do', 'lease', 'claims'],
  )
}

function wrong(make: Maker): unknown {
  return make.constantFrom(undefined, undefined, undefined, 'token', 'lease', 'key')
}

function releases(make: Maker): unknown {
  return record(
    make,
    {
      do: make.constantFrom('release'),
      claim: recent(make),
      some: seldom(make),
      wrong: wrong(make),
      request: seldom(make),
    },
    ['do', 'claim'],
  )
}

function replacements(make: Maker): unknown {
  return record(
    make,
    {
      do: make.constantFrom('replace'),
      claim: recent(make),
      value: make.constantFrom('new', ''),
      mode: make.constantFrom('exclusive', 'shared'),
      some: seldom(make),
      wrong: wrong(make),
      request: seldom(make),
    },
    ['do', 'claim'],
  )
}

function updates(make: Maker): unknown {
  return record(
    make,
    {
      do: make.constantFrom('update'),
      claim: recent(make),
      value: make.constantFrom('one', 'two', ''),
      wrong: wrong(make),
      request: seldom(make),
    },
    ['do', 'claim'],
  )
}

function revokes(make: Maker, step: number): unknown {
  return record(
    make,
    {
      do: make.constantFrom('revoke'),
      target: make.constantFrom('lease', 'lease', 'parent', 'prefix', 'key', 'claim'),
      at: recent(make),
      after: make.constantFrom(0, ...multiples(step, 3), 20 * step),
      request: seldom(make),
    },
    ['do', 'target', 'at'],
  )
}

function renewals(make: Maker): unknown {
  const leases = make.array(recent(make), { minLength: 1, maxLength: 4 })
  return record(make, { do: make.constantFrom('renew'), leases }, ['do', 'leases'])
}

function passing(make: Maker, step: number): unknown {
  const ms = make.constantFrom(0, step / 2, ...multiples(step, 4))
  return record(make, { do: make.constantFrom('pass'), ms }, ['do', 'ms'])
}

function reads(make: Maker): unknown {
  return record(
    make,
    {
      do: make.constantFrom('read'),
      what: make.constantFrom('key', 'prefix', 'lease', 'leases', 'history'),
      at: recent(make),
      limit: make.integer({ min: 1, max: 3 }),
    },
    ['do', 'what', 'at'],
  )
}
