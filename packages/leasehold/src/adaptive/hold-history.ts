import { Sketch } from './sketch.ts'

/** Statistics of some holds. */
export class HoldStatistics {
  /** How long the resource was held. */
  readonly held = new Sketch()
  /** The ttls of leases that expired although their holders were alive. */
  readonly outlived = new Sketch()
  /** How many holders died. */
  died = 0

  add(other: HoldStatistics): void {
    this.held.addAll(other.held)
    this.outlived.addAll(other.outlived)
    this.died += other.died
  }
}

/**
 * The observations of one kind of work, in two generations. When the newer one is full, it becomes
 * the older one, and the previous older one is dropped. Gradual fading would be smoother, but a few
 * long holds of the past weigh more than hundreds of short ones of today.
 *
 * Two histories are added by adding their generations, so the order of adding does not matter.
 */
export class HoldHistory {
  newer = new HoldStatistics()
  older = new HoldStatistics()
  /** How many holds were observed in total, including forgotten ones; for people. */
  seen = 0

  add(other: HoldHistory): void {
    this.newer.add(other.newer)
    this.older.add(other.older)
    this.seen += other.seen
  }

  /** Drops the older generation if the newer one has this many holds. */
  turn(full: number): void {
    if (this.newer.held.weight < full) return
    this.older = this.newer
    this.newer = new HoldStatistics()
  }

  /** Both generations. */
  get all(): HoldStatistics {
    const all = new HoldStatistics()
    all.add(this.older)
    all.add(this.newer)
    return all
  }
}
