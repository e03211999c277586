import {
  type Ahead,
  type Busy,
  type Claim,
  type Claimed,
  type ClaimSpec,
  type Key,
  LeaseholdError,
  type LeaseId,
  show,
} from '../../port/index.ts'
import { afterChange } from './faults.ts'
import { JointLooks } from './joint-looks.ts'
import { type Committed, Conflict, type Journal, Refused } from './journal.ts'
import { type Place, placeName, wouldHold } from './line.ts'
import type { Plan } from './plan.ts'
import {
  type ClaimRecord,
  type Entry,
  encode,
  keyRecord,
  NOTHING,
  numbered,
  type Remembered,
} from './records.ts'
import {
  type KeyState,
  type LeaseClaim,
  type OwnNodes,
  type Picked,
  type SurveyedKey,
  surveyOf,
} from './tree.ts'
import type { Session } from './wire/index.ts'
import { CODE, type Look } from './wire/index.ts'

/** So many containers are remembered as being there. */
const KNOWN_MOST = 65_536

/** What is to be claimed, and for whom. */
export interface Aim {
  readonly lease: LeaseId
  readonly holder: string
  /** How long the lease lives without a renewal, grace included. */
  readonly span: number
  readonly claims: readonly ClaimSpec[]
  readonly ifFree: boolean
  readonly isNamed: boolean
  readonly session: Session
  /** Adds what else is in the same transaction: the lease itself, where it is being granted. */
  readonly prepare?: ((plan: Plan) => Promise<void>) | undefined
  /** The answer from how the claims stand. */
  readonly answer: (standing: Omit<Claimed, 'outcome'>) => Remembered
}

export interface Placed {
  readonly claim: LeaseClaim
  readonly holds: boolean
  readonly answer: Remembered
}

/** What claiming needs of others. */
export interface Surroundings {
  /** Ends at once those of these leases that are due; answers whether there was one. */
  endDead(places: readonly Place[]): Promise<boolean>
  /** A claim as others see it. */
  describe(state: KeyState, picked: Picked): Claim
}

/** Puts claims into the lines of their keys, and finds out how they stand there. */
export class Claiming {
  readonly #journal: Journal
  readonly #looks: JointLooks
  readonly #around: Surroundings
  /** Containers that were there lately, so that it need not be looked each time. */
  readonly #known = new Set<string>()
  /** How long lines were lately: only a long one must be measured before it is joined. */
  readonly #lengths = new Map<Key, number>()

  constructor(journal: Journal, around: Surroundings) {
    this.#journal = journal
    this.#looks = new JointLooks(journal)
    this.#around = around
  }

  /** One try; a `Conflict` asks for another. */
  async place(name: string, aim: Aim): Promise<Placed | Busy> {
    const keys = aim.claims.map(({ key }) => key)
    const claim = this.#journal.nextName()
    const plan = this.#journal.plan()
    await this.#checkLengths(keys)
    const versions = aim.ifFree ? await this.#whereFree(name, aim) : undefined
    if (versions && 'outcome' in versions) return versions
    await aim.prepare?.(plan)
    await this.#addContainers(plan, keys)
    this.#addClaims(plan, aim, claim, versions)
    const answer = aim.answer({ revision: -1, token: -1, holds: true, ahead: [] })
    const open = aim.ifFree ? undefined : { claim, keys }
    const committing = this.#commit(name, plan, answer, open, aim)
    // Sent behind the transaction without waiting for it: the server answers both in order.
    const looking = this.#looks.keys(keys, aim.session)
    looking.catch(() => {})
    const { zxid, at } = await committing
    const states = await afterChange(looking)
    const standing = aim.ifFree
      ? { holds: true, answer: numbered(answer, zxid) }
      : await afterChange(this.#standing(name, plan, aim, claim, zxid, states))
    const made: LeaseClaim = { claim, token: zxid, keys, version: 0, own: ownNodes(aim, at) }
    const survey = standing.holds ? surveyOf(made, states) : undefined
    return { ...standing, claim: { ...made, survey } }
  }

  /** How the claims of an open entry stand; where they are gone, they had held. */
  async resolve(entry: Entry, zxid: number): Promise<Remembered> {
    const { claim, keys } = entry.open!
    const states = await this.#journal.tree.keys(keys)
    const there = states.filter(({ line }) => line.some((place) => place.claim === claim))
    const ahead = await this.#ahead(there, claim)
    const holds = ahead.length === 0 && this.#heldAll(states, claim, zxid)
    return numbered({ ...(entry.answer as Claimed), holds, ahead }, zxid)
  }

  /** Whether a claim holds these keys or, where it is gone by now, has held them. */
  #heldAll(states: readonly KeyState[], claim: string, token: number): boolean {
    const gone = states.filter(({ line }) => line.every((place) => place.claim !== claim))
    return gone.every(({ node }) => {
      const { tenures } = keyRecord(node)
      if (tenures.some((tenure) => tenure.token === token)) return true
      // It waited until it was taken away, if everybody who has held since is known.
      const { czxid, version } = node?.stat ?? { czxid: Infinity, version: 0 }
      if (czxid <= token && version <= tenures.length) return false
      throw new LeaseholdError(
        'unknown-outcome',
        'this claim was made and is gone since, and whether it held is not known any more: read how things stand',
      )
    })
  }

  async #standing(
    name: string,
    plan: Plan,
    aim: Aim,
    claim: string,
    token: number,
    states: readonly KeyState[],
  ): Promise<Omit<Placed, 'claim'>> {
    for (const { key, line } of states) this.#remember(key, line.length)
    const ahead = await this.#ahead(states, claim)
    const holds = ahead.length === 0 && this.#heldAll(states, claim, token)
    const answer = aim.answer({ revision: -1, token: -1, holds, ahead })
    if (!holds && aim.isNamed) {
      this.#journal.amend(name, { answer, events: plan.events }, aim.session)
    }
    return { holds, answer: numbered(answer, token) }
  }

  /** What stands before a claim, on each of these keys that it does not hold. */
  async #ahead(states: readonly KeyState[], claim: string): Promise<Ahead[]> {
    const waits = ({ line, held }: KeyState) => line.findIndex((it) => it.claim === claim) >= held
    let waiting = states.filter(waits)
    while (waiting.length > 0) {
      const keys = waiting.map(({ key }) => key)
      const survey = await this.#journal.tree.survey(keys, ({ line }) => line.slice(0, 1))
      const heads = survey.keys.filter(waits).flatMap(({ line }) => line.slice(0, 1))
      if (await this.#around.endDead(heads)) {
        waiting = await this.#journal.tree.keys(keys)
        continue
      }
      return survey.keys.filter(waits).flatMap((state) => this.#aheadOn(state, claim))
    }
    return []
  }

  #aheadOn(state: SurveyedKey, claim?: string): Ahead[] {
    const [first] = state.picked
    if (!first) return []
    const own = state.line.findIndex((place) => place.claim === claim)
    const count = own < 0 ? state.line.length : own
    return [{ key: state.key, count, first: this.#around.describe(state, first) }]
  }

  /** The versions of the counters at a moment when all was free; or the answer that it was not. */
  async #whereFree(name: string, aim: Aim): Promise<Map<string, number> | Busy> {
    const { tree } = this.#journal
    const keys = aim.claims.map(({ key }) => key)
    const counters = [...new Set(keys.map((key) => tree.paths.counter(key)))]
    const looks: Look[] = counters.map((path) => ({ at: 'data', path }))
    const { value } = await tree.look(looks, aim.session)
    const { zxid, keys: states } = await tree.survey(
      keys,
      ({ line }) => line.slice(0, 1),
      aim.session,
    )
    const taken = states.filter(({ line }, at) => !wouldHold(line, standingOf(aim.claims[at]!)))
    if (taken.length === 0) {
      return new Map(counters.map((path, at) => [path, value[at]!.data!.stat.version]))
    }
    if (await this.#around.endDead(taken.flatMap(({ line }) => line.slice(0, 1)))) {
      throw new Conflict('claim', CODE.nodeExists)
    }
    const ahead = taken.flatMap((state) => this.#aheadOn(state))
    const busy: Busy = { outcome: 'busy', revision: zxid, ahead }
    if (aim.isNamed) await this.#journal.commit(name, this.#journal.plan(), busy)
    return busy
  }

  #addClaims(plan: Plan, aim: Aim, claim: string, versions?: Map<string, number>): void {
    const { paths } = this.#journal.tree
    const { lease, holder, span } = aim
    const isPermanent = span === Infinity
    plan.create('index', paths.claimsOf(lease, claim), encode(aim.claims.map(({ key }) => key)))
    for (const { key, mode = 'exclusive', limit, value } of aim.claims) {
      const place = placeName({ mode, limit, isPermanent, lease, claim })
      const record: ClaimRecord = { holder, value, span }
      plan.create('claim', `${paths.key(key)}/${place}`, encode(record), 'sequential')
      plan.events.push({ type: 'claimed', key, token: -1, lease, holder, mode, limit, value })
    }
    for (const path of new Set(aim.claims.map(({ key }) => paths.counter(key)))) {
      plan.set('counter', path, NOTHING, versions?.get(path))
    }
  }

  async #commit(
    name: string,
    plan: Plan,
    answer: Remembered,
    open: Entry['open'],
    aim: Aim,
  ): Promise<Committed> {
    try {
      return await this.#journal.commit(name, plan, answer, { open }, aim.session)
    } catch (error) {
      if (!(error instanceof Conflict)) throw error
      const isGone = error.part === 'index' && error.code === CODE.noNode
      if (isGone) throw await this.#journal.noLease(aim.lease)
      for (const { key } of aim.claims) this.#known.delete(this.#journal.tree.paths.key(key))
      throw error
    }
  }

  /** Adds the containers that are not there yet. */
  async #addContainers(plan: Plan, keys: readonly Key[]): Promise<void> {
    const { tree } = this.#journal
    const unknown = keys.filter((key) => !this.#known.has(tree.paths.key(key)))
    const paths = [...new Set(unknown.flatMap((key) => tree.paths.containers(key)))]
    if (paths.length === 0) return
    const { value } = await tree.look(paths.map((path) => ({ at: 'data', path })))
    for (const [at, path] of paths.entries()) {
      if (!value[at]?.data) plan.create('container', path, NOTHING, 'container')
    }
    if (this.#known.size > KNOWN_MOST) this.#known.clear()
    for (const key of unknown) this.#known.add(tree.paths.key(key))
  }

  #remember(key: Key, length: number): void {
    if (length > this.#journal.limits.claimsPerKey / 2) this.#lengths.set(key, length)
    else this.#lengths.delete(key)
    if (this.#lengths.size > KNOWN_MOST) this.#lengths.clear()
  }

  async #checkLengths(keys: readonly Key[]): Promise<void> {
    const long = keys.filter((key) => this.#lengths.has(key))
    if (long.length === 0) return
    const most = this.#journal.limits.claimsPerKey
    for (const { key, line } of await this.#journal.tree.keys(long)) {
      if (line.length < most) continue
      throw new Refused({
        code: 'limit-exceeded',
        message: `key ${show(key)} has ${line.length} claims, the most that it may have: wait until some are released`,
      })
    }
  }
}

function standingOf({ mode = 'exclusive', limit }: ClaimSpec) {
  return { mode, limit }
}

function ownNodes({ claims, holder, span }: Aim, claimedAt: number): OwnNodes {
  const records = claims.map(({ key, value }) => [key, { holder, value, span }] as const)
  return { claimedAt, records: new Map(records) }
}
