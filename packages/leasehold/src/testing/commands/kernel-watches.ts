import type { Kernel, NoticeSink } from '../../kernel/index.ts'
import type { End, Key, LeaseId, Notice, Revision, Token } from '../../port/index.ts'

/** Watches on the leases of a kernel: what a store's watch that began at the same time must report. */
export class KernelWatches implements NoticeSink {
  readonly #notices = new Map<number, Notice[][]>()

  /** All notices of the watch; the list grows. */
  begin(kernel: Kernel, lease: LeaseId): readonly Notice[] {
    const standing = kernel.ownClaims(lease)
    if (!standing) return [{ type: 'gone', end: kernel.endOf(lease) }]
    const { slot, claims } = standing
    const notices: Notice[] = [{ type: 'standing', revision: kernel.revision, claims }]
    this.#notices.set(slot, [...(this.#notices.get(slot) ?? []), notices])
    return notices
  }

  holds(lease: number, revision: Revision, token: Token): void {
    this.#tell(lease, { type: 'holds', revision, token })
  }

  removed(lease: number, revision: Revision, key: Key, token: Token, end: End): void {
    this.#tell(lease, { type: 'removed', revision, key, token, end })
  }

  capped(lease: number, remaining: number, end: End | undefined): void {
    this.#tell(lease, { type: 'capped', remaining, end })
  }

  gone(lease: number, end: End): void {
    this.#tell(lease, { type: 'gone', end })
    // Another lease may get its slot next.
    this.#notices.delete(lease)
  }

  #tell(lease: number, notice: Notice): void {
    for (const notices of this.#notices.get(lease) ?? []) notices.push(notice)
  }
}
