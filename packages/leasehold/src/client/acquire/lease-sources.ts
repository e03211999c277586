import {
  type Duration,
  invalid,
  type Labels,
  LeaseholdError,
  type LeaseId,
  show,
} from '../../port/index.ts'
import type { ClientCore } from '../core.ts'
import { type Timing, type TimingOptions, timingOf } from '../leases/index.ts'
import { LeaseSource } from './lease-source.ts'

export interface HoldOptions extends TimingOptions {
  /**
   * How long to wait in the queue at most; then the wait fails with `timeout` and leaves no claim. 0
   * does not wait at all. No limit if not given.
   */
  readonly wait?: Duration | undefined
  /**
   * How long the store may take to answer at most; then it fails with `unknown-outcome`, and what may
   * have been claimed is removed in the background. The client's `timeout` if not given.
   */
  readonly timeout?: Duration | undefined
  /**
   * Ends it as soon as the connection to the server ends, as when this process dies, instead of when
   * its ttl ends. Only on a server; the client's `tied` if not given.
   */
  readonly tied?: boolean | undefined
  /** Ends the wait with `aborted`. It has no effect on what is held already. */
  readonly signal?: AbortSignal | undefined
  /**
   * A lease that this one ends with. If that lease ends, by expiry too, the store notifies at once,
   * but unlike one's own expiry it cannot be foreseen: see `Hold`.
   */
  readonly parent?: LeaseId | undefined
  /** Labels for the lease, for people and queries. */
  readonly labels?: Labels | undefined
}

/** How many combinations of options are remembered: a program uses few. */
const KNOWN_MAX = 8

/** Options that share a lease, as they were given. */
interface Known extends Pick<HoldOptions, 'strategy' | 'ttl' | 'grace' | 'renewEvery' | 'tied'> {
  readonly source: LeaseSource
}

/**
 * Finds the lease for an acquisition. Claims with the same timing share one lease. Those that need
 * something of their own (a limit on holding, a parent, labels, no automatic renewal, an infinite
 * ttl) get a lease of their own.
 */
export class LeaseSources {
  readonly #core: ClientCore
  readonly #shared = new Map<string, LeaseSource>()
  #known: Known[] = []

  constructor(core: ClientCore) {
    this.#core = core
  }

  /** Refuses options that cannot work. */
  find(options: HoldOptions): LeaseSource {
    if (typeof options !== 'object' || options === null) {
      throw invalid(`options is ${show(options)}: it must be an object`)
    }
    const { strategy, ttl, grace, renewEvery, maxHold, parent, labels, tied } = options
    const mayShare = maxHold === undefined && parent === undefined && labels === undefined
    if (mayShare) {
      for (const known of this.#known) {
        if (known.ttl !== ttl || known.strategy !== strategy || known.tied !== tied) continue
        if (known.grace === grace && known.renewEvery === renewEvery) return known.source
      }
    }
    if (tied !== undefined) this.#checkTied(tied)
    const timing = timingOf(options, this.#core.settings, this.#core.store.guarantees)
    if (!mayShare || timing.renewal !== 'automatic' || timing.ttl === Infinity) {
      return new LeaseSource(this.#core, timing, tied, { parent, labels })
    }
    const source = this.#sharedBy(timing, tied)
    if (this.#known.length === KNOWN_MAX) this.#known = []
    this.#known.push({ strategy, ttl, grace, renewEvery, tied, source })
    return source
  }

  #checkTied(tied: boolean): void {
    if (typeof tied !== 'boolean') throw invalid(`tied is ${show(tied)}: it must be true or false`)
    const { ties, engine } = this.#core.store.guarantees
    if (ties || !tied) return
    throw new LeaseholdError(
      'unsupported',
      `tied needs a server, whose connection ends with this process; this store is ${show(engine)}. Open 'http://host:7420', or leave tied out`,
    )
  }

  #sharedBy(timing: Timing, tied: boolean | undefined): LeaseSource {
    const name = `${timing.ttl}/${timing.grace}/${timing.every}/${tied}`
    let source = this.#shared.get(name)
    if (source === undefined) {
      this.#forgetIdle()
      source = new LeaseSource(this.#core, timing, tied)
      this.#shared.set(name, source)
    }
    return source
  }

  /** A program that computes its ttls would otherwise leave one behind for each. */
  #forgetIdle(): void {
    this.#known = []
    for (const [name, source] of this.#shared) if (source.isIdle) this.#shared.delete(name)
  }
}
