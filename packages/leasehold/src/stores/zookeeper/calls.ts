import {
  type Busy,
  type Changed,
  type Claimed,
  type ClaimRequest,
  type End,
  type Granted,
  type GrantRequest,
  type Key,
  type LeaseId,
  type ReleaseRequest,
  type Revision,
  type Revoked,
  type RevokeRequest,
  show,
  type UpdateRequest,
} from '../../port/index.ts'
import type { Claiming, Placed } from './claiming.ts'
import type { Ending } from './ending.ts'
import { afterChange } from './faults.ts'
import { JointCommits } from './joint-commits.ts'
import { Conflict, type Journal, Refused, type Resolve } from './journal.ts'
import { type Lessor, spanOf } from './lessor.ts'
import type { Plan } from './plan.ts'
import { encode, endOfLife, type LeaseRecord, type Removal, settled } from './records.ts'
import type { KeyState, LeaseClaim, LeaseState, SurveyedKey } from './tree.ts'

const RELEASED: End = { reason: 'released' }
/** So many claims or leases are ended by one call at most: all must fit into one transaction. */
const REVOKED_MOST = 256
/** So many forced removals are remembered on a lease, for its holder to hear of. */
const REMOVALS_MOST = REVOKED_MOST

/** Told of what was done to leases here, so that those who watch them need not look. */
export interface Hearer {
  claimed(lease: LeaseId, claim: LeaseClaim, holds: boolean): void
  released(lease: LeaseId, token: number, keys: readonly Key[], revision: Revision): void
}

/** The calls that change something, each as one transaction. */
export class Calls {
  readonly #journal: Journal
  readonly #joint: JointCommits
  readonly #lessor: Lessor
  readonly #claiming: Claiming
  readonly #ending: Ending
  readonly #hearer: Hearer
  readonly #resolve: Resolve

  constructor(
    journal: Journal,
    lessor: Lessor,
    claiming: Claiming,
    ending: Ending,
    hearer: Hearer,
  ) {
    this.#journal = journal
    this.#joint = new JointCommits(journal)
    this.#lessor = lessor
    this.#claiming = claiming
    this.#ending = ending
    this.#hearer = hearer
    this.#resolve = (entry, zxid) => claiming.resolve(entry, zxid)
  }

  async grant(request: GrantRequest): Promise<Granted | Busy> {
    const { claims, parent } = request
    const { record, session } = await this.#lessor.prepare(request)
    const id = this.#journal.nextName()
    const { epoch } = session
    const outcome = 'granted' as const
    let placed: Placed | Busy | undefined
    const answer = await this.#journal.carryOut<Granted | Busy>(
      request.request,
      this.#resolve,
      async (name) => {
        const prepare = async (plan: Plan) => {
          if (parent !== undefined) await this.#checkParent(parent)
          this.#lessor.add(plan, id, record)
        }
        try {
          if (claims === undefined) {
            const plan = this.#journal.plan()
            await prepare(plan)
            const ahead = [] as const
            const plain = { outcome, lease: id, token: 0, holds: true, ahead }
            const entry = { ...plain, revision: -1 }
            const { zxid } = await this.#journal.commit(name, plan, entry, {}, session)
            return { ...plain, revision: zxid }
          }
          placed = await this.#claiming.place(name, {
            lease: id,
            holder: request.holder,
            span: spanOf(record),
            claims,
            ifFree: request.ifFree === true,
            isNamed: request.request !== undefined,
            session,
            prepare,
            answer: (standing) => ({ outcome, lease: id, ...standing }),
          })
          return 'outcome' in placed ? placed : (placed.answer as Granted)
        } catch (error) {
          const isGone = error instanceof Conflict && error.part === 'parent'
          throw isGone ? await this.#journal.noLease(parent!) : error
        }
      },
    )
    if (answer.outcome === 'granted' && answer.lease === id) {
      this.#lessor.granted(id, record, session, epoch)
      if (placed) this.#claimed(id, placed)
    }
    return answer
  }

  async claim(request: ClaimRequest): Promise<Claimed | Busy> {
    const { lease, claims } = request
    let placed: Placed | Busy | undefined
    const answer = await this.#journal.carryOut<Claimed | Busy>(
      request.request,
      this.#resolve,
      async (name) => {
        const record = await this.#recordOf(lease)
        this.#checkRoom(lease, claims.length)
        placed = await this.#claiming.place(name, {
          lease,
          holder: record.holder,
          span: spanOf(record),
          claims,
          ifFree: request.ifFree === true,
          isNamed: request.request !== undefined,
          session: this.#journal.tree.main,
          answer: (standing) => ({ outcome: 'claimed', ...standing }),
        })
        return 'outcome' in placed ? placed : (placed.answer as Claimed)
      },
    )
    if (placed) this.#claimed(lease, placed)
    else if (answer.outcome === 'claimed') await afterChange(this.#claimedBefore(lease, answer))
    return answer
  }

  async release(request: ReleaseRequest): Promise<Changed> {
    const { lease, keys, token } = request
    const answer = await this.#journal.carryOut(request.request, this.#resolve, async (name) => {
      const { claim, survey } =
        this.#recall(lease, keys, token) ?? (await this.#find(lease, keys, token))
      const plan = this.#journal.plan()
      plan.takeOff(survey, RELEASED)
      const left = claim.keys.filter((key) => !keys.includes(key))
      plan.leave(lease, claim, left)
      // Should this not be so any more, it is looked up the next time.
      this.#lessor.forget(lease, token)
      const revision = await this.#joint.commit(name, plan).catch((error) => {
        // Another store has released some of its keys: which are left must be read.
        const isStale = error instanceof Conflict && error.part === 'index'
        if (isStale) this.#lessor.released(lease, token, [])
        throw error
      })
      this.#lessor.released(lease, token, left)
      return { revision }
    })
    this.#hearer.released(lease, token, keys, answer.revision)
    return answer
  }

  update(request: UpdateRequest): Promise<Changed> {
    const { lease, key, token, value } = request
    return this.#journal.carryOut(request.request, this.#resolve, async (name) => {
      const { survey } = await this.#find(lease, [key], token)
      this.#lessor.forget(lease, token)
      const { place, record } = survey[0]!.picked[0]!
      const plan = this.#journal.plan()
      const path = `${this.#journal.tree.paths.key(key)}/${place.name}`
      plan.set('claim', path, encode({ ...record, value }))
      const { holder } = record
      const { mode, limit } = place
      plan.events.push({ type: 'updated', key, token, lease, holder, mode, limit, value })
      return { revision: await this.#joint.commit(name, plan) }
    })
  }

  revoke(request: RevokeRequest): Promise<Revoked> {
    const { target, after, by, why } = request
    const end: End = { reason: 'revoked', by, why }
    return this.#journal.carryOut(request.request, this.#resolve, async (name) => {
      // What was there when this was asked for is found, though our server may lag behind.
      await this.#journal.tree.catchUp()
      if ('key' in target || 'prefix' in target) return this.#removeClaims(name, request, end)
      const id = 'lease' in target ? target.lease : target.parent
      const state = await this.#journal.tree.lease(id)
      if (!state) throw await this.#journal.noLease(id)
      const some = 'lease' in target ? [id] : state.children.slice(0, REVOKED_MOST)
      const more = 'parent' in target && state.children.length > some.length
      if (after) return this.#breakLeases(name, some, request, more)
      const families = await Promise.all(some.map((each) => this.#ending.family(each)))
      if (families.some((family) => family.length === 0)) throw new Conflict('lease', 0)
      if (families.length === 0) return this.#nothing(name, request, state.zxid, more)
      const answer = (leases: number, claims: number) => ({ revision: -1, leases, claims, more })
      const done = await this.#ending.end(families, end, { call: { name, answer } })
      this.#lessor.ended(done.leases)
      return { revision: done.revision, leases: done.leases.length, claims: done.claims, more }
    })
  }

  #claimed(lease: LeaseId, placed: Placed | Busy): void {
    if ('outcome' in placed) return
    this.#lessor.claimed(lease, placed.claim)
    this.#hearer.claimed(lease, placed.claim, placed.holds)
  }

  /** The first answer to this was lost, or given before: it is not known here what it has made. */
  async #claimedBefore(lease: LeaseId, { token, holds }: Claimed): Promise<void> {
    const claims = (await this.#journal.tree.lease(lease))?.claims ?? []
    const claim = claims.find((each) => each.token === token)
    if (claim) this.#hearer.claimed(lease, claim, holds)
  }

  async #recordOf(id: LeaseId): Promise<LeaseRecord> {
    const record =
      this.#lessor.get(id)?.record ?? (await this.#journal.tree.leaseForSure(id))?.record
    if (!record) throw await this.#journal.noLease(id)
    return record
  }

  async #checkParent(id: LeaseId): Promise<void> {
    const { tree, limits } = this.#journal
    const parent = await tree.leaseForSure(id)
    if (!parent) throw await this.#journal.noLease(id)
    if (parent.children.length >= limits.childrenPerLease) {
      throw exceeded(
        `lease ${id} has ${limits.childrenPerLease} leases under it, the most that it may have`,
      )
    }
    let depth = 1
    for (let above = parent.record.parent; above !== undefined; depth++) {
      above = (await tree.lease(above))?.record.parent
    }
    if (depth >= limits.leaseDepth) {
      throw exceeded(
        `lease ${id} is ${limits.leaseDepth} deep, the deepest that a lease may be: use a parent higher up`,
      )
    }
  }

  #checkRoom(id: LeaseId, wanted: number): void {
    const most = this.#journal.limits.claimsPerLease
    let count = 0
    for (const { keys } of this.#lessor.get(id)?.claims.values() ?? []) count += keys.length
    if (count + wanted <= most) return
    throw exceeded(
      `lease ${id} has ${count} claims of at most ${most}: release some, or use another lease`,
    )
  }

  /** What is known of a claim that was made here, and has held ever since. */
  #recall(lease: LeaseId, keys: readonly Key[], token: number) {
    const claim = this.#lessor.get(lease)?.claims.get(token)
    const survey = claim?.survey?.filter(({ key }) => keys.includes(key))
    return claim && survey?.length === keys.length ? { claim, survey } : undefined
  }

  /** The claim with this token, which must be on all of these keys. */
  async #find(
    lease: LeaseId,
    keys: readonly Key[],
    token: number,
  ): Promise<{ claim: LeaseClaim; survey: readonly SurveyedKey[] }> {
    const found = await this.#look(lease, keys, token)
    if (found) return found
    // What we remember may be out of date, and our server may lag behind: that is not to be held
    // against the caller.
    const { tree } = this.#journal
    await tree.catchUp()
    const claims = (await tree.lease(lease))?.claims
    if (!claims) throw await this.#journal.noLease(lease)
    const again = await this.#look(lease, keys, token, claims)
    if (again) return again
    throw await this.#noClaim(lease, keys, token)
  }

  /** The same, by what is remembered or told of the lease's claims; `undefined` where it is not so. */
  async #look(lease: LeaseId, keys: readonly Key[], token: number, told?: readonly LeaseClaim[]) {
    const { tree } = this.#journal
    const known = told ? undefined : this.#lessor.get(lease)?.claims.get(token)
    const claims = told ?? (known ? [known] : (await tree.lease(lease))?.claims)
    const claim = claims?.find((each) => each.token === token)
    if (!claim) return undefined
    const own = ({ line }: KeyState) => line.filter((place) => place.claim === claim.claim)
    const { keys: survey } = await tree.survey(keys, own)
    return survey.every(({ picked }) => picked.length > 0) ? { claim, survey } : undefined
  }

  async #noClaim(lease: LeaseId, keys: readonly Key[], token: number): Promise<Refused> {
    const survey = await this.#journal.tree.survey(keys, ({ line }) => line)
    const has = ({ picked }: SurveyedKey) => picked.some((each) => each.token === token)
    const missing = survey.keys.find((state) => !has(state)) ?? survey.keys[0]!
    const { key } = missing
    const first = missing.picked[0]?.token
    const now = first === undefined ? 'nobody has claimed it' : `token ${first} is first`
    return new Refused({
      code: 'claim-not-found',
      message: `lease ${lease} has no claim with token ${token} on ${show(key)}: it was released or taken away (now ${now})`,
    })
  }

  async #removeClaims(name: string, request: RevokeRequest, end: End): Promise<Revoked> {
    const { tree } = this.#journal
    const target = request.target as { key: Key; token?: number } | { prefix: string }
    const keys = 'key' in target ? [target.key] : await tree.keysUnder(target.prefix)
    const { keys: all, zxid } = await tree.survey(keys.slice(0, REVOKED_MOST), ({ line }) =>
      line.slice(0, REVOKED_MOST + 1),
    )
    let room = REVOKED_MOST
    const survey = all.map((state) => {
      const wanted = state.picked.filter(
        ({ token }) => !('token' in target) || target.token === undefined || token === target.token,
      )
      const picked = wanted.slice(0, room)
      room -= picked.length
      return { ...state, picked, isCut: picked.length < wanted.length }
    })
    const more = keys.length > REVOKED_MOST || survey.some(({ isCut }) => isCut)
    const claims = REVOKED_MOST - room
    if (claims === 0) return this.#nothing(name, request, zxid, more)
    const plan = this.#journal.plan()
    plan.takeOff(survey, end)
    for (const [lease, removals] of removalsOf(survey, end)) {
      const state = await tree.lease(lease)
      if (!state) throw new Conflict('lease', 0)
      const record = settled(state.record, state.node.stat)
      const removed = [...(record.removed ?? []), ...removals].slice(-REMOVALS_MOST)
      const path = tree.paths.lease(lease)
      plan.set('lease', path, encode({ ...record, removed }), state.node.stat.version)
      for (const claim of state.claims) {
        const gone = removals.flatMap((it) => (it.token === claim.token ? [it.key] : []))
        const left = claim.keys.filter((key) => !gone.includes(key))
        if (gone.length > 0) plan.leave(lease, claim, left)
      }
    }
    const answer = { leases: 0, claims, more }
    const committed = await this.#journal.commit(name, plan, { ...answer, revision: -1 })
    return { ...answer, revision: committed.zxid }
  }

  async #breakLeases(
    name: string,
    ids: readonly LeaseId[],
    request: RevokeRequest,
    more: boolean,
  ): Promise<Revoked> {
    const { tree, clock } = this.#journal
    const after = request.after!
    const states = await Promise.all(ids.map((id) => tree.lease(id)))
    const there = states.filter((state) => state !== undefined)
    if (there.length < ids.length) throw new Conflict('lease', 0)
    const longer = there.filter((state) => this.#endOfLife(state) > clock.now() + after)
    if (longer.length === 0) return this.#nothing(name, request, there[0]?.zxid ?? 0, more)
    const plan = this.#journal.plan()
    for (const { id, record, node } of longer) {
      const cap = { after, at: 0, by: request.by, why: request.why }
      const next = { ...settled(record, node.stat), cap }
      plan.set('lease', tree.paths.lease(id), encode(next), node.stat.version)
    }
    const answer = { leases: longer.length, claims: 0, more }
    const { zxid } = await this.#journal.commit(name, plan, { ...answer, revision: -1 })
    return { ...answer, revision: zxid }
  }

  /** On our own clock; of a lease that we do not keep, as well as two clocks can be compared. */
  #endOfLife({ id, record, node }: LeaseState): number {
    return this.#lessor.get(id)?.endOfLife ?? endOfLife(record, node.stat)
  }

  async #nothing(
    name: string,
    { request }: RevokeRequest,
    revision: number,
    more: boolean,
  ): Promise<Revoked> {
    const answer = { revision, leases: 0, claims: 0, more }
    if (request !== undefined) await this.#journal.commit(name, this.#journal.plan(), answer)
    return answer
  }
}

function removalsOf(survey: readonly SurveyedKey[], end: End): Map<LeaseId, Removal[]> {
  const byLease = new Map<LeaseId, Removal[]>()
  for (const { key, picked } of survey) {
    for (const { place, token } of picked) {
      const removal = { key, token, end, revision: 0 }
      byLease.set(place.lease, [...(byLease.get(place.lease) ?? []), removal])
    }
  }
  return byLease
}

function exceeded(message: string): Refused {
  return new Refused({ code: 'limit-exceeded', message })
}
