import { Sketch } from './sketch.ts'

/** What some holds have shown. */
export class Experience {
  /** How long the resource was held. */
  readonly held = new Sketch()
  /** With which ttls leases ran out although their holders lived. */
  readonly outlived = new Sketch()
  /** How many holders died. */
  died = 0

  add(other: Experience): void {
    this.held.addAll(other.held)
    this.outlived.addAll(other.outlived)
    this.died += other.died
  }
}

/**
 * What was seen of one kind of work, in two generations: when the newer one is full, it becomes the
 * older one, and what was the older one is forgotten at once. Fading little by little would be
 * smoother, but a few long holds out of the past weigh more than hundreds of short ones of today.
 *
 * Two memories are added by adding their generations, so that it does not matter who adds whose, nor
 * in which order.
 */
export class Memory {
  newer = new Experience()
  older = new Experience()
  /** How many holds were seen in all, the forgotten ones included; for people. */
  seen = 0

  add(other: Memory): void {
    this.newer.add(other.newer)
    this.older.add(other.older)
    this.seen += other.seen
  }

  /** Forgets the older generation where the newer one has so many holds. */
  turn(full: number): void {
    if (this.newer.held.weight < full) return
    this.older = this.newer
    this.newer = new Experience()
  }

  /** Both generations. */
  get all(): Experience {
    const all = new Experience()
    all.add(this.older)
    all.add(this.newer)
    return all
  }
}
