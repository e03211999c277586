import {
  type Duration,
  formatDuration,
  type Guarantees,
  invalid,
  milliseconds,
  show,
} from '../port/index.ts'

export interface AdaptiveOptions {
  /** The kind of work to learn about. Holds of one kind should last about equally long. */
  readonly kind: string
  /**
   * The shortest ttl to choose. Default: 5 s. Half of it is left for retries, and a holder that is
   * paused that long, by its machine or the network, must not lose its lease.
   */
  readonly min?: Duration | undefined
  /** The longest ttl: a dead holder blocks others for no longer. Default: 10 min. */
  readonly max?: Duration | undefined
  /** The ttl until enough holds were observed. Default: 30 s. */
  readonly initial?: Duration | undefined
  /** The store's `guarantees.ttl`. Choices are within it, in whole steps. */
  readonly store?: Guarantees['ttl'] | undefined
  /** The cost of one renewal, in any unit. Default: 1. */
  readonly renewalCost?: number | undefined
  /**
   * The cost of one second during which a dead holder blocks the resource, in the same unit. Default:
   * 10. With holds of a minute, of which 1 in 100 dies, this leads to a ttl of half a minute to a
   * minute, as people choose by hand. Only its ratio to `renewalCost` matters.
   */
  readonly blockedCost?: number | undefined
  /**
   * The expected share of holds that end with the holder's death. Default: 0.01. It has the weight of
   * 50 holds, so observations soon outweigh it.
   */
  readonly deathShare?: number | undefined
  /** After which part of the ttl a lease is renewed. Default: 0.5, as for locks. */
  readonly part?: number | undefined
  /**
   * How many holds are remembered: at least the last ones of this number, and at most twice as many,
   * however old they are. Default: 150.
   */
  readonly memory?: number | undefined
  /** How many holds must be remembered before they decide the ttl. Default: 8. */
  readonly enough?: number | undefined
}

/** The checked options with defaults. Times are in milliseconds. */
export interface AdaptiveSettings {
  readonly kind: string
  readonly min: number
  readonly max: number
  readonly step: number
  readonly initial: number
  readonly renewalCost: number
  /** Per millisecond. */
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
    throw invalid(
      'max is infinite: a dead holder would block the resource forever. Give a finite max.',
    )
  // A default gives way to a given option.
  if (options.min === undefined) own.min = Math.min(own.min, own.max)
  if (options.max === undefined) own.max = Math.max(own.min, own.max)
  if (own.min > own.max) {
    throw invalid(
      `min ${formatDuration(own.min)} is longer than max ${formatDuration(own.max)}: use a shorter min`,
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
    // Even a store without steps gets whole milliseconds: more digits are hard to read.
    return { min, max, step: Math.max(step, 1) }
  }
  throw invalid(
    `store is min ${show(min)}, max ${show(max)}, step ${show(step)}: give the store's guarantees.ttl`,
  )
}

/** The next multiple of `step` that is not shorter. */
export function wholeSteps(ms: number, step: number): number {
  return Math.ceil(ms / step - 1e-9) * step
}

function kindOf(kind: string): string {
  const isPlain = typeof kind === 'string' && kind.isWellFormed() && !/\p{Cc}/u.test(kind)
  if (isPlain && kind.length > 0 && kind.length <= KIND_LENGTH_MAX) return kind
  throw invalid(
    `kind is ${show(kind)}: it must be a string of 1 to ${KIND_LENGTH_MAX} characters without control characters`,
  )
}

function number(name: string, value: number, least: number, most: number): number {
  if (typeof value === 'number' && value >= least && value <= most) return value
  throw invalid(`${name} is ${show(value)}: it must be a number from ${least} to ${most}`)
}

/** An unknown name is a typing error, and would otherwise be ignored silently. */
export function checkNames(what: string, value: object, names: readonly string[]): void {
  if (typeof value !== 'object' || value === null) {
    throw invalid(`${what} is ${show(value)}: it must be an object`)
  }
  const unknown = Object.keys(value).find((name) => !names.includes(name))
  if (unknown === undefined) return
  throw invalid(`${what} has ${show(unknown)}, which is unknown: it can have ${names.join(', ')}`)
}
