import { type Duration, invalid, milliseconds, show } from '../port/index.ts'
import { choiceOf, type TtlChoice } from './choice.ts'
import { HoldHistory } from './hold-history.ts'
import { deserialize, serialize } from './serialization.ts'
import { type AdaptiveOptions, type AdaptiveSettings, checkNames, settingsOf } from './settings.ts'

/**
 * How a hold ended.
 *
 * - `released`: the holder released it, or it was revoked. The holder was alive.
 * - `died`: the lease expired and the holder never came back: the resource was blocked for nothing.
 * - `outlived`: the lease expired although the holder was alive, because it was paused or cut off
 *   for longer than the ttl. This is not a death. If it were counted as one, short ttls would
 *   cause ends that ask for even shorter ttls.
 */
export type HoldEnd = 'released' | 'died' | 'outlived'

export interface ObservedHold {
  /** How long the resource was held; for `died`, until the store ended the lease. */
  readonly held: Duration
  readonly ended: HoldEnd
  /**
   * The ttl of the hold, grace included. For `died` it tells how long the holder was dead, which is
   * not counted as work. Required for `outlived`.
   */
  readonly ttl?: Duration | undefined
}

/**
 * Learns how long holds of one kind of work last, and chooses the ttl with the lowest cost: a short
 * ttl costs renewals, a long one blocks the resource for longer when a holder dies.
 *
 * What it has learnt can be stored as a string and added to that of others (`merge`). Merging adds
 * and does not deduplicate: merge what was observed since the last merge, once. What is merged twice
 * counts twice until it is forgotten. If an older string overwrites it, only later merges are lost.
 *
 * Promised: choices are within the bounds, and depend only on the observations, in any order of
 * merging. Not promised: that a ttl is longer than the pauses of its holder. `min` is for that; if
 * it proves too short, report the end as `outlived`.
 */
export class AdaptiveTtl {
  readonly #settings: AdaptiveSettings
  #history = new HoldHistory()
  #choice: TtlChoice | undefined = undefined
  #damage: string | undefined = undefined

  constructor(options: AdaptiveOptions) {
    this.#settings = settingsOf(options)
  }

  /**
   * Continues from a stored string, or starts empty (`undefined`). If the string cannot be read, it
   * starts empty, and `damage` says why: that is no reason to stop working.
   */
  static fromText(text: string | undefined, options: AdaptiveOptions): AdaptiveTtl {
    const learner = new AdaptiveTtl(options)
    if (text === undefined) return learner
    if (typeof text !== 'string') throw invalid(`text is ${show(text)}: it must be a string`)
    const read = deserialize(text, learner.kind)
    if (typeof read === 'string') learner.#damage = read
    else learner.#history = read
    return learner
  }

  get kind(): string {
    return this.#settings.kind
  }

  /** How many holds were observed, including forgotten ones. */
  get seen(): number {
    return this.#history.seen
  }

  /** What is wrong with the stored string; `undefined` if nothing is. */
  get damage(): string | undefined {
    return this.#damage
  }

  observe(observation: ObservedHold): void {
    const { held, ended, ttl } = observed(observation)
    const died = ended === 'died'
    // On average a holder dies halfway between two renewals.
    const dead = died && ttl !== undefined ? ttl * (1 - this.#settings.part / 2) : 0
    const alive = Math.max(held - dead, 0)
    const history = this.#history
    history.turn(this.#settings.memory)
    history.seen++
    history.newer.held.add(alive)
    if (died) history.newer.died++
    if (ended === 'outlived') history.newer.outlived.add(ttl!)
    this.#choice = undefined
  }

  /** Adds what another learner of the same kind has observed. The other one is not changed. */
  merge(other: AdaptiveTtl): void {
    if (!(other instanceof AdaptiveTtl)) {
      throw invalid(`other is ${show(other)}: merge an AdaptiveTtl, such as fromText returns`)
    }
    if (other.kind !== this.kind) {
      throw invalid(`kind ${show(other.kind)} cannot be merged into kind ${show(this.kind)}`)
    }
    this.#history.add(other.#history)
    this.#choice = undefined
  }

  /** Everything it has learnt, in a few hundred characters; never more than 5,000. */
  toText(): string {
    // Merging may have filled the newer generation: the reader should start the next one.
    this.#history.turn(this.#settings.memory)
    this.#choice = undefined
    return serialize(this.kind, this.#history)
  }

  choose(): TtlChoice {
    this.#choice ??= choiceOf(this.#history.all, this.#settings, this.#damage)
    return this.#choice
  }
}

const ENDS: readonly string[] = ['released', 'died', 'outlived'] satisfies HoldEnd[]

function observed(observation: ObservedHold) {
  checkNames('observation', observation, ['held', 'ended', 'ttl'])
  const { ended } = observation
  const held = finite('held', observation.held)
  if (!ENDS.includes(ended)) {
    throw invalid(`ended is ${show(ended)}: it must be one of ${ENDS.join(', ')}`)
  }
  if (observation.ttl === undefined) {
    if (ended !== 'outlived') return { held, ended, ttl: undefined }
    throw invalid('ttl is missing: give the ttl that was outlived')
  }
  const ttl = finite('ttl', observation.ttl)
  if (ttl > 0) return { held, ended, ttl }
  throw invalid('ttl is 0: it must be more than 0')
}

function finite(name: string, value: Duration): number {
  const ms = milliseconds(value, name)
  if (ms < Infinity) return ms
  throw invalid(`${name} is infinite: give the actual time`)
}
