import type { End, Key, LeaseId } from '../../port/index.ts'
import { isLeaseholdError } from '../../port/index.ts'
import type { Journal } from './journal.ts'
import type { Plan } from './plan.ts'
import { encode, type Remembered } from './records.ts'
import type { KeyState, LeaseState } from './tree.ts'

/** So many calls' claims are taken off together, where all at once do not fit. */
const CLAIMS_AT_ONCE = 100

/** What is to hold for an end to be carried out. */
export type Guard = (plan: Plan, root: LeaseState) => void

export interface Ended {
  readonly revision: number
  readonly leases: readonly LeaseId[]
  readonly claims: number
}

/**
 * Ends leases with all under them and all their claims, in one transaction. Should one of them get a
 * new claim or a new child meanwhile, its node cannot be deleted and the transaction fails: then
 * all is read again. So nothing is left behind, and nobody is ended by halves.
 */
export class Ending {
  readonly #journal: Journal

  constructor(journal: Journal) {
    this.#journal = journal
  }

  /** One lease and all under it, parents first; empty where there is none. */
  async family(id: LeaseId): Promise<LeaseState[]> {
    const { tree } = this.#journal
    const found: LeaseState[] = []
    let level: readonly LeaseId[] = [id]
    while (level.length > 0) {
      const states = await Promise.all(level.map((each) => tree.lease(each)))
      const there = states.filter((state) => state !== undefined)
      found.push(...there)
      level = there.flatMap(({ children }) => children)
    }
    return found
  }

  /** Ends these families; `answer` is what the call is remembered with. */
  async end(
    name: string,
    roots: readonly (readonly LeaseState[])[],
    end: End,
    answer: (leases: number, claims: number) => Remembered,
    guard?: Guard,
  ): Promise<Ended> {
    const leases = roots.flat()
    const plan = this.#journal.plan()
    for (const [root] of roots) if (root) guard?.(plan, root)
    const claims = await this.#plan(plan, leases, end)
    const ended = leases.map(({ id }) => id)
    const remembered = answer(leases.length, claims)
    try {
      const { zxid } = await this.#journal.commit(name, plan, remembered, { ended })
      return { revision: zxid, leases: ended, claims }
    } catch (error) {
      if (!isLeaseholdError(error, 'limit-exceeded')) throw error
      await this.#makeRoom(leases, end)
      const [first] = roots.flat()
      return this.end(name, [await this.family(first!.id)], end, answer, guard)
    }
  }

  /** Where an end does not fit into one transaction, those below end first, or some of the claims. */
  async #makeRoom(leases: readonly LeaseState[], end: End): Promise<void> {
    for (const lease of leases.slice(1).reverse()) {
      await this.end(this.#journal.nextName(), [[lease]], end, () => ({ revision: -1 }))
    }
    const [first] = leases
    if (leases.length > 1 || !first) return
    const some = { ...first, claims: first.claims.slice(0, CLAIMS_AT_ONCE) }
    const plan = this.#journal.plan()
    await this.#planClaims(plan, [some], end)
    await this.#journal.commit(this.#journal.nextName(), plan, { revision: -1 })
  }

  async #plan(plan: Plan, leases: readonly LeaseState[], end: End): Promise<number> {
    const { tree } = this.#journal
    const { paths } = tree
    const count = await this.#planClaims(plan, leases, end)
    const alive = await tree.look(leases.map(({ id }) => ({ at: 'data', path: paths.aliveOf(id) })))
    for (let at = leases.length - 1; at >= 0; at--) {
      const { id, record, children } = leases[at]!
      for (const child of children) plan.delete('lease', paths.childOf(id, child))
      plan.delete('lease', paths.lease(id))
      if (alive.value[at]?.data) plan.delete('alive', paths.aliveOf(id))
      plan.create('end', paths.endOf(id), encode(end))
      const isRoot = record.parent !== undefined && !leases.some((it) => it.id === record.parent)
      if (isRoot) plan.delete('parent', paths.childOf(record.parent!, id))
    }
    return count
  }

  async #planClaims(plan: Plan, leases: readonly LeaseState[], end: End): Promise<number> {
    const { tree } = this.#journal
    const claims = new Set(leases.flatMap((lease) => lease.claims.map(({ claim }) => claim)))
    const keys = [...new Set(leases.flatMap(keysOf))]
    const own = (state: KeyState) => state.line.filter(({ claim }) => claims.has(claim))
    const survey = await tree.survey(keys, own)
    plan.takeOff(survey.keys, end)
    for (const { id, claims: made } of leases) {
      for (const { claim } of made) plan.delete('index', tree.paths.claimsOf(id, claim))
    }
    return survey.keys.reduce((sum, { picked }) => sum + picked.length, 0)
  }
}

function keysOf(lease: LeaseState): Key[] {
  return lease.claims.flatMap(({ keys }) => keys)
}
