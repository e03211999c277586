import {
  type Duration,
  formatDuration,
  type Guarantees,
  invalid,
  milliseconds,
  show,
} from '../port/index.ts'

export interface AdaptiveOptions {
  /** What is learnt about: holds of one kind should last about as long as each other. */
  readonly kind: string
  /**
   * The shortest ttl that may be chosen. 5 s if not given: half of it is left for retries, and a
   * holder that is paused for so long, by its machine or by the network, must not lose its lease.
   */
  readonly min?: Duration | undefined
  /** The longest: for no longer than this does a dead holder block anybody. 10 min if not given. */
  readonly max?: Duration | undefined
  /** The ttl as long as too little was seen. 30 s if not given. */
  readonly initial?: Duration | undefined
  /** What the store can keep: its `guarantees.ttl`. Choices stay within it, in whole steps of it. */
  readonly store?: Guarantees['ttl'] | undefined
  /** What one renewal costs, in any unit. 1 if not given. */
  readonly renewalCost?: number | undefined
  /**
   * What it costs that the resource is blocked for one second by a holder that is dead, in the same
   * unit. 10 if not given: with holds of a minute, of which 1 in 100 dies, this leads to a ttl of
   * half a minute to a minute, as people choose by hand. Only its ratio to `renewalCost` matters.
   */
  readonly blockedCost?: number | undefined
  /**
   * The share of holds that you expect to end by the holder's death: 0.01 if not given. It has the
   * weight of 50 holds, and gives way to what is seen.
   */
  readonly deathShare?: number | undefined
  /** After which part of the ttl a lease is renewed. 0.5 if not given, as locks do. */
  readonly part?: number | undefined
  /**
   * How many holds are remembered: at least the last so many, and at most twice as many, however
   * long ago they were. 150 if not given.
   */
  readonly memory?: number | undefined
  /** How many holds must be remembered before the ttl is chosen by them. 8 if not given. */
  readonly enough?: number | undefined
}

/** The options, checked and filled in; times in milliseconds. */
export interface AdaptiveSettings {
  readonly kind: string
  readonly min: number
  readonly max: number
  readonly step: number
  readonly initial: number
  readonly renewalCost: number
  /** For one millisecond. */
  readonly blockedCost: number
  readonly deathShare: number
  readonly part: number
  readonly memory: number
  readonly enough: number
}

const NAMES = [
  'kind',
  'min',
  'max',
  'initial',
  'store',
  'renewalCost',
  'blockedCost',
  'deathShare',
  'part',
  'memory',
  'enough',
] as const satisfies (keyof AdaptiveOptions)[]

const KIND_LENGTH_MAX = 200

export function settingsOf(options: AdaptiveOptions): AdaptiveSettings {
  checkNames('options', options, NAMES)
  const { min, max, step } = boundsOf(options)
  const memory = number('memory', options.memory ?? 150, 10, 10_000)
  const initial = milliseconds(options.initial ?? '30s', 'initial')
  return {
    kind: kindOf(options.kind),
    min,
    max,
    step,
    initial: Math.min(Math.max(wholeSteps(initial, step), min), max),
    renewalCost: number('renewalCost', options.renewalCost ?? 1, 0, 1e9),
    blockedCost: number('blockedCost', options.blockedCost ?? 10, 0, 1e9) / 1000,
    deathShare: number('deathShare', options.deathShare ?? 0.01, 0, 1),
    part: number('part', options.part ?? 0.5, 0.01, 0.95),
    memory,
    enough: number('enough', options.enough ?? 8, 1, memory),
  }
}

function boundsOf(options: AdaptiveOptions): { min: number; max: number; step: number } {
  const own = {
    min: milliseconds(options.min ?? '5s', 'min'),
    max: milliseconds(options.max ?? '10m', 'max'),
  }
  if (!(own.min > 0)) throw invalid(`min is ${show(options.min)}: it must be more than 0`)
  if (own.max === Infinity)
    throw invalid('max is infinite: a dead holder would never be found out; give a finite one')
  // What was not asked for gives way to what was.
  if (options.min === undefined) own.min = Math.min(own.min, own.max)
  if (options.max === undefined) own.max = Math.max(own.min, own.max)
  if (own.min > own.max) {
    throw invalid(
      `min ${formatDuration(own.min)} is longer than max ${formatDuration(own.max)}: give a min that is at most as long`,
    )
  }
  const store = storeOf(options.store)
  const min = wholeSteps(Math.max(own.min, store.min), store.step)
  const max = Math.floor(Math.min(own.max, store.max) / store.step) * store.step
  if (min <= max) return { min, max, step: store.step }
  throw invalid(
    `no ttl from min ${formatDuration(own.min)} to max ${formatDuration(own.max)} can be kept by this store, which keeps ${formatDuration(store.min)} to ${formatDuration(store.max)} in steps of ${formatDuration(store.step)}: widen min and max`,
  )
}

function storeOf(ttl: Guarantees['ttl'] | undefined): Guarantees['ttl'] {
  if (ttl === undefined) return { min: 1, max: Infinity, step: 1 }
  const { min, max, step } = Object(ttl) as Guarantees['ttl']
  if (min >= 0 && max >= min && step >= 0 && step < Infinity) {
    // A store without steps is given whole milliseconds all the same: nobody wants to read more.
    return { min, max, step: Math.max(step, 1) }
  }
  throw invalid(
    `store is min ${show(min)}, max ${show(max)}, step ${show(step)}: give the store's guarantees.ttl`,
  )
}

/** The next whole number of steps that is not shorter. */
export function wholeSteps(ms: number, step: number): number {
  return Math.ceil(ms / step - 1e-9) * step
}

function kindOf(kind: string): string {
  const isPlain = typeof kind === 'string' && kind.isWellFormed() && !/\p{Cc}/u.test(kind)
  if (isPlain && kind.length > 0 && kind.length <= KIND_LENGTH_MAX) return kind
  throw invalid(
    `kind is ${show(kind)}: it must be a text of 1 to ${KIND_LENGTH_MAX} characters without control characters`,
  )
}

function number(name: string, value: number, least: number, most: number): number {
  if (typeof value === 'number' && value >= least && value <= most) return value
  throw invalid(`${name} is ${show(value)}: it must be a number from ${least} to ${most}`)
}

/** A name that is not known is a misspelt one, and would otherwise be ignored in silence. */
export function checkNames(what: string, value: object, names: readonly string[]): void {
  if (typeof value !== 'object' || value === null) {
    throw invalid(`${what} is ${show(value)}: it must be an object`)
  }
  const unknown = Object.keys(value).find((name) => !names.includes(name))
  if (unknown === undefined) return
  throw invalid(`${what} has ${show(unknown)}, which is unknown: it can have ${names.join(', ')}`)
}
