import type { End, Key, LeaseId } from '../../port/index.ts'
import { isLeaseholdError } from '../../port/index.ts'
import { afterChange } from './faults.ts'
import type { Journal } from './journal.ts'
import type { Plan } from './plan.ts'
import { encode, type Remembered, settled } from './records.ts'
import type { KeyState, LeaseState, Survey } from './tree.ts'

/** What is to hold for an end to be carried out. */
export type Guard = (plan: Plan, root: LeaseState) => void

export interface EndOptions {
  readonly guard?: Guard | undefined
  /** Whose doing it is: the name of the call, and what it is remembered with. */
  readonly call?: EndingCall | undefined
}

interface EndingCall {
  readonly name: string
  readonly answer: (leases: number, claims: number) => Remembered
}

/** What has come to an end. */
interface Gone {
  readonly leases: readonly LeaseId[]
  readonly claims: number
}

export interface Ended extends Gone {
  readonly revision: number
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

  /** Ends these families. */
  async end(
    roots: readonly (readonly LeaseState[])[],
    end: End,
    options: EndOptions = {},
    before: Gone = { leases: [], claims: 0 },
  ): Promise<Ended> {
    const { guard, call } = options
    const leases = roots.flat()
    const plan = this.#journal.plan()
    for (const [root] of roots) if (root) guard?.(plan, root)
    const claims = before.claims + (await this.#plan(plan, leases, end))
    const own = leases.map(({ id }) => id)
    const ended = [...before.leases, ...own]
    try {
      const more = { ended: own }
      if (!call) {
        return { revision: await this.#journal.commitOwn(plan, more), leases: ended, claims }
      }
      const answer = call.answer(ended.length, claims)
      const { zxid } = await this.#journal.commit(call.name, plan, answer, more)
      return { revision: zxid, leases: ended, claims }
    } catch (error) {
      if (!isTooLarge(error)) throw error
      const gone = await this.#makeRoom(leases, end, guard)
      const all = {
        leases: [...before.leases, ...gone.leases],
        claims: before.claims + gone.claims,
      }
      const rest = this.family(leases[0]!.id).then((it) => this.end([it], end, options, all))
      return afterChange(rest)
    }
  }

  /** Where an end does not fit into one transaction, those below end first, or some of the claims. */
  async #makeRoom(leases: readonly LeaseState[], end: End, guard?: Guard): Promise<Gone> {
    const [first, ...below] = leases
    if (below.length === 0) return this.#takeSome(first!, end, guard)
    const gone: Ended[] = []
    for (const lease of below.reverse()) {
      const ending = this.end([[lease]], end)
      gone.push(await (gone.length > 0 ? afterChange(ending) : ending))
    }
    const claims = gone.reduce((sum, each) => sum + each.claims, 0)
    return { leases: gone.flatMap((each) => each.leases), claims }
  }

  /**
   * Takes half of its claims off a lease, or as many as fit. Its life is over from then on: nobody
   * may save it by a renewal, with only some of what it had.
   */
  async #takeSome(lease: LeaseState, end: End, guard?: Guard): Promise<Gone> {
    for (let most = Math.ceil(keysOf(lease).length / 2); ; most = Math.ceil(most / 2)) {
      const plan = this.#journal.plan()
      guard?.(plan, lease)
      const cap = { after: 0, at: 0, by: end.by, why: end.why }
      const record = { ...settled(lease.record, lease.node.stat), cap }
      const path = this.#journal.tree.paths.lease(lease.id)
      plan.set('lease', path, encode(record), lease.node.stat.version)
      const claims = await this.#planSome(plan, lease, most, end)
      try {
        await this.#journal.commitOwn(plan)
        return { leases: [], claims }
      } catch (error) {
        if (!isTooLarge(error) || most === 1) throw error
      }
    }
  }

  async #planSome(plan: Plan, { id, claims }: LeaseState, most: number, end: End): Promise<number> {
    let room = most
    const taken = new Map<string, readonly Key[]>()
    for (const claim of claims) {
      const keys = claim.keys.slice(0, room)
      if (keys.length === 0) break
      room -= keys.length
      taken.set(claim.claim, keys)
      plan.leave(id, claim, claim.keys.slice(keys.length))
    }
    const isTaken = (key: Key, claim: string) => taken.get(claim)?.includes(key) ?? false
    const keys = [...new Set([...taken.values()].flat())]
    const survey = await this.#journal.tree.survey(keys, ({ key, line }) =>
      line.filter(({ claim }) => isTaken(key, claim)),
    )
    plan.takeOff(survey.keys, end)
    return countOf(survey)
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
      for (const claim of made) plan.leave(id, claim, [])
    }
    return countOf(survey)
  }
}

function isTooLarge(error: unknown): boolean {
  return isLeaseholdError(error, 'limit-exceeded')
}

function countOf({ keys }: Survey): number {
  return keys.reduce((sum, { picked }) => sum + picked.length, 0)
}

function keysOf(lease: LeaseState): Key[] {
  return lease.claims.flatMap(({ keys }) => keys)
}
