import type { Key, LeaseId, LeaseStore } from 'leasehold/port'
import { SERVER_PREFIX } from '../access/index.ts'
import { isProbe } from '../operations/index.ts'
import type { Levels } from './feed-messages.ts'

const PAGE = 1000

interface Round {
  keys: number
  waiting: number
  leases: number
  readonly holders: Set<string>
  /** The last key or lease that was counted. */
  key: Key | undefined
  lease: LeaseId | undefined
  isPastKeys: boolean
}

/**
 * Counts what a store holds, so that a new page shows how it changed before. Each step reads a page of
 * keys and, after the last one, a page of leases: a small store is counted in one step, a large one
 * never costs more.
 */
export class LevelCounter {
  /** The counts of the last complete round. */
  levels: Levels | undefined = undefined
  readonly #store: LeaseStore
  #round = newRound()
  #isCounting = false

  constructor(store: LeaseStore) {
    this.#store = store
  }

  /** A failed step is repeated by the next one. */
  async step(): Promise<void> {
    if (this.#isCounting) return
    this.#isCounting = true
    try {
      await this.#count(this.#round)
    } catch {
      this.#round = newRound()
    } finally {
      this.#isCounting = false
    }
  }

  async #count(round: Round): Promise<void> {
    if (!round.isPastKeys) {
      const { keys, more } = await this.#store.read({ prefix: '', after: round.key, limit: PAGE })
      for (const { key, count, holders } of keys) {
        // The page does not show the server's own keys, such as those of access tokens.
        if (key.startsWith(SERVER_PREFIX)) continue
        round.keys++
        round.waiting += count - holders
      }
      round.key = keys.at(-1)?.key
      round.isPastKeys = !more
      if (more) return
    }
    const page = await this.#store.read({ leases: true, after: round.lease, limit: PAGE })
    for (const lease of page.leases) {
      if (isProbe(lease)) continue
      round.holders.add(lease.holder)
      round.leases++
    }
    round.lease = page.leases.at(-1)?.id
    if (page.more) return
    const { keys, waiting, leases, holders } = round
    this.levels = { keys, waiting, leases, holders: holders.size }
    this.#round = newRound()
  }
}

function newRound(): Round {
  return {
    ...{ keys: 0, waiting: 0, leases: 0, holders: new Set() },
    ...{ key: undefined, lease: undefined, isPastKeys: false },
  }
}
