import { AdaptiveTtl } from 'leasehold'
import { SeededRandom } from 'leasehold/testing'
import type { Work, Workload } from './workloads.js'

/** The defaults of `AdaptiveTtl`, to compute the cost of a run. */
export const MIN = 5000
export const MAX = 600_000
const RENEWAL_COST = 1
const BLOCKED_COST = 10 / 1000
const PART = 1 / 2

/** The mean cost of a run per hold; `blocked` is in milliseconds. */
export interface Cost {
  readonly renewals: number
  readonly blocked: number
  readonly cost: number
}

export function worksOf(workload: Workload, seed: number, holds: number): Work[] {
  const random = new SeededRandom(seed)
  return Array.from({ length: holds }, (_, index) => workload.draw(random, index / holds))
}

/** One hold as in reality: renewed until its work is done, or until its holder is dead. */
function simulate({ length, diesAfter }: Work, ttl: number) {
  const every = ttl * PART
  const died = diesAfter < length
  const held = died ? diesAfter : length
  const renewals = Math.max(0, Math.ceil(held / every) - 1)
  const blocked = died ? renewals * every + ttl - held : 0
  return { died, held, renewals, blocked }
}

function averageCost(renewals: number, blocked: number, holds: number): Cost {
  const cost = (renewals * RENEWAL_COST + blocked * BLOCKED_COST) / holds
  return { renewals: renewals / holds, blocked: blocked / holds, cost }
}

export function simulateFixed(works: readonly Work[], ttl: number): Cost {
  let renewals = 0
  let blocked = 0
  for (const work of works) {
    const result = simulate(work, ttl)
    renewals += result.renewals
    blocked += result.blocked
  }
  return averageCost(renewals, blocked, works.length)
}

/** Starts without knowledge, and learns from the history of a store: when each hold ended. */
export function simulateAdaptive(
  works: readonly Work[],
): Cost & { readonly ttls: readonly number[] } {
  const learner = new AdaptiveTtl({ kind: 'work' })
  let renewals = 0
  let blocked = 0
  const ttls = works.map((work) => {
    const { ttl } = learner.choose()
    const result = simulate(work, ttl)
    renewals += result.renewals
    blocked += result.blocked
    const held = result.held + result.blocked
    learner.observe({ held, ended: result.died ? 'died' : 'released', ttl })
    return ttl
  })
  return { ...averageCost(renewals, blocked, works.length), ttls }
}

/** The fixed ttls for the comparison, 5 % apart. */
export const FIXED: readonly number[] = Array.from(
  { length: Math.round(Math.log(MAX / MIN) / Math.log(1.05)) + 1 },
  (_, index, count = Math.round(Math.log(MAX / MIN) / Math.log(1.05))) =>
    MIN * (MAX / MIN) ** (index / count),
)
