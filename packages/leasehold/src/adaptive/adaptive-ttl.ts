import { type Duration, invalid, milliseconds, show } from '../port/index.ts'
import { choiceOf, type TtlChoice } from './choice.ts'
import { Memory } from './experience.ts'
import { type AdaptiveOptions, type AdaptiveSettings, checkNames, settingsOf } from './settings.ts'
import { memoryOf, textOf } from './text.ts'

/**
 * How a hold came to its end.
 *
 * - `released`: its holder gave it back, or it was taken by force. Its holder lived.
 * - `died`: its lease ran out and nobody came back: the resource was blocked for nothing.
 * - `outlived`: its lease ran out although its holder lived, because it was paused or cut off for
 *   longer than the ttl. This is not a death. If it were counted as one, short ttls would cause
 *   ends that ask for shorter ttls.
 */
export type HoldEnd = 'released' | 'died' | 'outlived'

export interface ObservedHold {
  /** For how long the resource was held; of one that died, until the store ended its lease. */
  readonly held: Duration
  readonly ended: HoldEnd
  /**
   * The ttl that it was held with, its grace included. Of one that died, the time for which it was
   * dead is thereby known and not taken for work. Needed for one that was outlived.
   */
  readonly ttl?: Duration | undefined
}

/**
 * Learns how long one kind of work is really held, and chooses the ttl that costs least: a short
 * ttl costs renewals, a long one blocks the resource for longer when a holder dies.
 *
 * What it knows can be kept as a text and added to what others know (`merge`). It is added, not
 * united: merge what was seen since the last time, once. What is merged twice counts twice, until it
 * is forgotten; a text that is overwritten by a staler one loses only what was merged since.
 *
 * Promised: choices lie within the bounds, and depend on nothing but what was observed, in any
 * order of merging. Not promised: that a ttl outlasts the pauses of its holder. `min` is for that;
 * where it proves too short, report the end as `outlived`.
 */
export class AdaptiveTtl {
  readonly #settings: AdaptiveSettings
  #memory = new Memory()
  #choice: TtlChoice | undefined = undefined
  #damage: string | undefined = undefined

  constructor(options: AdaptiveOptions) {
    this.#settings = settingsOf(options)
  }

  /**
   * Goes on from what was kept, or begins where nothing was (`undefined`). A text that cannot be read is no reason to stop working: it begins
   * anew, and `damage` says why.
   */
  static fromText(text: string | undefined, options: AdaptiveOptions): AdaptiveTtl {
    const learner = new AdaptiveTtl(options)
    if (text === undefined) return learner
    if (typeof text !== 'string') throw invalid(`text is ${show(text)}: it must be a text`)
    const read = memoryOf(text, learner.kind)
    if (typeof read === 'string') learner.#damage = read
    else learner.#memory = read
    return learner
  }

  get kind(): string {
    return this.#settings.kind
  }

  /** How many holds were seen, the forgotten ones included. */
  get seen(): number {
    return this.#memory.seen
  }

  /** What is wrong with the text that it was to go on from; `undefined` where nothing was. */
  get damage(): string | undefined {
    return this.#damage
  }

  observe(observation: ObservedHold): void {
    const { held, ended, ttl } = observed(observation)
    const died = ended === 'died'
    // On average a holder dies in the middle between two renewals.
    const dead = died && ttl !== undefined ? ttl * (1 - this.#settings.part / 2) : 0
    const alive = Math.max(held - dead, 0)
    const memory = this.#memory
    memory.turn(this.#settings.memory)
    memory.seen++
    memory.newer.held.add(alive)
    if (died) memory.newer.died++
    if (ended === 'outlived') memory.newer.outlived.add(ttl!)
    this.#choice = undefined
  }

  /** Adds what another one of the same kind has seen. The other one is not changed. */
  merge(other: AdaptiveTtl): void {
    if (!(other instanceof AdaptiveTtl)) {
      throw invalid(`other is ${show(other)}: merge an AdaptiveTtl, such as fromText gives`)
    }
    if (other.kind !== this.kind) {
      throw invalid(`kind ${show(other.kind)} cannot be merged into kind ${show(this.kind)}`)
    }
    this.#memory.add(other.#memory)
    this.#choice = undefined
  }

  /** All that it knows, in a few hundred characters; never more than 5,000. */
  toText(): string {
    // What was merged may have filled the newer generation: whoever reads it should begin the next.
    this.#memory.turn(this.#settings.memory)
    this.#choice = undefined
    return textOf(this.kind, this.#memory)
  }

  choose(): TtlChoice {
    this.#choice ??= choiceOf(this.#memory.all, this.#settings, this.#damage)
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
    throw invalid('ttl is missing: say which ttl was outlived')
  }
  const ttl = finite('ttl', observation.ttl)
  if (ttl > 0) return { held, ended, ttl }
  throw invalid('ttl is 0: it must be more than that')
}

function finite(name: string, value: Duration): number {
  const ms = milliseconds(value, name)
  if (ms < Infinity) return ms
  throw invalid(`${name} is infinite: give the time that it really was`)
}
