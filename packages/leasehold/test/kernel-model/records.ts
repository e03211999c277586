import type { GrantedClaim, GrantedLease, Journal } from '../../src/kernel/index.ts'
import type { End, Revision, Time } from '../../src/port/index.ts'

/** Something that a journal was told, and can be told to another. */
export interface Told {
  /** `undefined` where it concerns no lease. */
  readonly slot: number | undefined
  readonly revision: Revision
  readonly kind: keyof Journal
  tell(journal: Journal): void
}

/** A journal that remembers what it was told. */
export class Records implements Journal {
  readonly told: Told[] = []
  /** The revision at which the lease in each slot was granted. */
  readonly born = new Map<number, Revision>()

  granted(revision: Revision, slot: number, lease: GrantedLease): void {
    this.born.set(slot, lease.born)
    this.#add('granted', slot, revision, (journal) => journal.granted(revision, slot, lease))
  }

  capped(revision: Revision, slot: number, at: Time, endOfLife: Time, end: End): void {
    this.#add('capped', slot, revision, (journal) =>
      journal.capped(revision, slot, at, endOfLife, end),
    )
  }

  ended(revision: Revision, slot: number, at: Time, end: End): void {
    this.#add('ended', slot, revision, (journal) => journal.ended(revision, slot, at, end))
  }

  claimed(revision: Revision, slot: number, claim: GrantedClaim): void {
    this.#add('claimed', slot, revision, (journal) => journal.claimed(revision, slot, claim))
  }

  updated(...args: Parameters<Journal['updated']>): void {
    this.#add('updated', args[1], args[0], (journal) => journal.updated(...args))
  }

  released(...args: Parameters<Journal['released']>): void {
    this.#add('released', args[1], args[0], (journal) => journal.released(...args))
  }

  answered(...args: Parameters<Journal['answered']>): void {
    this.#add('answered', undefined, 0, (journal) => journal.answered(...args))
  }

  tenure(...args: Parameters<Journal['tenure']>): void {
    this.#add('tenure', undefined, 0, (journal) => journal.tenure(...args))
  }

  remembered(...args: Parameters<Journal['remembered']>): void {
    this.#add('remembered', undefined, 0, (journal) => journal.remembered(...args))
  }

  #add(
    kind: keyof Journal,
    slot: number | undefined,
    revision: Revision,
    tell: (journal: Journal) => void,
  ): void {
    this.told.push({ kind, slot, revision, tell })
  }
}
