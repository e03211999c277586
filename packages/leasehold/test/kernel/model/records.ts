import type { ChangeSink, GrantedClaim, GrantedLease } from '../../../src/kernel/index.ts'
import type { End, Revision, Time } from '../../../src/port/index.ts'

/** A change that was recorded and can be replayed. */
export interface RecordedChange {
  /** `undefined` if it concerns no lease. */
  readonly slot: number | undefined
  readonly revision: Revision
  readonly kind: keyof ChangeSink
  replay(changeSink: ChangeSink): void
}

/** A sink that records the changes. */
export class Records implements ChangeSink {
  readonly changes: RecordedChange[] = []
  /** The revision at which the lease in each slot was granted. */
  readonly born = new Map<number, Revision>()

  granted(revision: Revision, slot: number, lease: GrantedLease): void {
    this.born.set(slot, lease.born)
    this.#add('granted', slot, revision, (changeSink) => changeSink.granted(revision, slot, lease))
  }

  capped(revision: Revision, slot: number, at: Time, endOfLife: Time, end: End): void {
    this.#add('capped', slot, revision, (changeSink) =>
      changeSink.capped(revision, slot, at, endOfLife, end),
    )
  }

  ended(revision: Revision, slot: number, at: Time, end: End): void {
    this.#add('ended', slot, revision, (changeSink) => changeSink.ended(revision, slot, at, end))
  }

  claimed(revision: Revision, slot: number, claim: GrantedClaim): void {
    this.#add('claimed', slot, revision, (changeSink) => changeSink.claimed(revision, slot, claim))
  }

  updated(...args: Parameters<ChangeSink['updated']>): void {
    this.#add('updated', args[1], args[0], (changeSink) => changeSink.updated(...args))
  }

  released(...args: Parameters<ChangeSink['released']>): void {
    this.#add('released', args[1], args[0], (changeSink) => changeSink.released(...args))
  }

  answered(...args: Parameters<ChangeSink['answered']>): void {
    this.#add('answered', undefined, 0, (changeSink) => changeSink.answered(...args))
  }

  tenure(...args: Parameters<ChangeSink['tenure']>): void {
    this.#add('tenure', undefined, 0, (changeSink) => changeSink.tenure(...args))
  }

  remembered(...args: Parameters<ChangeSink['remembered']>): void {
    this.#add('remembered', undefined, 0, (changeSink) => changeSink.remembered(...args))
  }

  #add(
    kind: keyof ChangeSink,
    slot: number | undefined,
    revision: Revision,
    replay: (changeSink: ChangeSink) => void,
  ): void {
    this.changes.push({ kind, slot, revision, replay })
  }
}
