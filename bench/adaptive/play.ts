import { AdaptiveTtl } from 'leasehold'
import { SeededRandom } from 'leasehold/testing'
import type { Work, Workload } from './workloads.js'

/** The defaults of `AdaptiveTtl`, for whoever adds up what a run has cost. */
export const MIN = 5000
export const MAX = 600_000
const RENEWAL_COST = 1
const BLOCKED_COST = 10 / 1000
const PART = 1 / 2

/** What a run has cost, on average for each hold; `blocked` in milliseconds. */
export interface Bill {
  readonly renewals: number
  readonly blocked: number
  readonly cost: number
}

export function worksOf(workload: Workload, seed: number, holds: number): Work[] {
  const random = new SeededRandom(seed)
  return Array.from({ length: holds }, (_, index) => workload.draw(random, index / holds))
}

/** One hold as it would really go: renewed until its work is done, or until its holder is dead. */
function play({ length, diesAfter }: Work, ttl: number) {
  const every = ttl * PART
  const died = diesAfter < length
  const held = died ? diesAfter : length
  const renewals = Math.max(0, Math.ceil(held / every) - 1)
  const blocked = died ? renewals * every + ttl - held : 0
  return { died, held, renewals, blocked }
}

function billOf(renewals: number, blocked: number, holds: number): Bill {
  const cost = (renewals * RENEWAL_COST + blocked * BLOCKED_COST) / holds
  return { renewals: renewals / holds, blocked: blocked / holds, cost }
}

export function playFixed(works: readonly Work[], ttl: number): Bill {
  let renewals = 0
  let blocked = 0
  for (const work of works) {
    const played = play(work, ttl)
    renewals += played.renewals
    blocked += played.blocked
  }
  return billOf(renewals, blocked, works.length)
}

/** Begins without any knowledge, and learns what a store's history tells: when each hold ended. */
export function playAdaptive(works: readonly Work[]): Bill & { readonly ttls: readonly number[] } {
  const learner = new AdaptiveTtl({ kind: 'work' })
  let renewals = 0
  let blocked = 0
  const ttls = works.map((work) => {
    const { ttl } = learner.choose()
    const played = play(work, ttl)
    renewals += played.renewals
    blocked += played.blocked
    const held = played.held + played.blocked
    learner.observe({ held, ended: played.died ? 'died' : 'released', ttl })
    return ttl
  })
  return { ...billOf(renewals, blocked, works.length), ttls }
}

/** The fixed ttls that it is compared with: 5 % apart. */
export const FIXED: readonly number[] = Array.from(
  { length: Math.round(Math.log(MAX / MIN) / Math.log(1.05)) + 1 },
  (_, index, count = Math.round(Math.log(MAX / MIN) / Math.log(1.05))) =>
    MIN * (MAX / MIN) ** (index / count),
)
