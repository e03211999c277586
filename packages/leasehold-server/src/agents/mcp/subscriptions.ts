import { LeaseholdError, type Watch } from 'leasehold/port'
import type { SessionOf } from '../agent-session.ts'
import { HOLDS_URI, watchResource } from './resources.ts'

/** Different resources that one connection may follow. */
const URIS_MAX = 100

/** The resources that a client follows over one connection. */
export class Subscriptions {
  readonly #sessionOf: SessionOf
  readonly #updated: (uri: string) => void
  /** For each resource: its watch, and the ids of the requests that follow it. */
  readonly #followed = new Map<string, { watch?: Watch; readonly by: Set<unknown> }>()
  #isClosed = false

  constructor(sessionOf: SessionOf, updated: (uri: string) => void) {
    this.#sessionOf = sessionOf
    this.#updated = updated
  }

  async follow(uri: string, by: unknown): Promise<void> {
    const known = this.#followed.get(uri)
    if (known !== undefined) {
      known.by.add(by)
      return
    }
    if (this.#followed.size >= URIS_MAX) {
      throw new LeaseholdError(
        'limit-exceeded',
        `this connection follows ${URIS_MAX} resources, the maximum: unsubscribe from one first`,
      )
    }
    const followed: { watch?: Watch; readonly by: Set<unknown> } = { by: new Set([by]) }
    this.#followed.set(uri, followed)
    try {
      const session = await this.#sessionOf({ reads: uri !== HOLDS_URI })
      if (this.#isClosed || followed.by.size === 0) return
      followed.watch = watchResource(session, uri, () => this.#updated(uri))
    } catch (error) {
      this.#followed.delete(uri)
      throw error
    }
  }

  unfollow(uri: string, by: unknown): void {
    const followed = this.#followed.get(uri)
    if (followed === undefined || !followed.by.delete(by) || followed.by.size > 0) return
    followed.watch?.close()
    this.#followed.delete(uri)
  }

  /** Ends everything that one request follows. */
  unfollowAll(by: unknown): void {
    for (const uri of [...this.#followed.keys()]) this.unfollow(uri, by)
  }

  close(): void {
    this.#isClosed = true
    for (const { watch } of this.#followed.values()) watch?.close()
    this.#followed.clear()
  }
}
