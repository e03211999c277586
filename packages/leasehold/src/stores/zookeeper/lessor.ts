import type { Capped, End, GrantRequest, LeaseId, Lost, Renewed, Timer } from '../../port/index.ts'
import type { Ending, Guard } from './ending.ts'
import { afterChange } from './faults.ts'
import { Conflict, type Journal } from './journal.ts'
import type { Plan } from './plan.ts'
import { decode, encode, endOfLife, type LeaseRecord, NOTHING, settled } from './records.ts'
import type { Sessions } from './sessions.ts'
import { type KeyState, type LeaseClaim, surveyOf } from './tree.ts'
import type { Session } from './wire/index.ts'
import { CODE, getData, isFault, type NodeData, type Op, sync } from './wire/index.ts'

/** How long to wait before an end is tried again that could not be carried out. */
const OBSTRUCTED_MS = 250

/** So many leases that others kept are taken over at a time. */
const ADOPTED_AT_ONCE = 32

const EXPIRED: End = { reason: 'expired' }
const AGED: End = { reason: 'expired', why: 'it reached the end of its maximum life' }

/** A lease that this store keeps: its session lives here, and so does its clock. */
export interface Kept {
  readonly id: LeaseId
  record: LeaseRecord
  readonly session: Session
  /** Its ephemeral node was made in this epoch of the session. */
  readonly epoch: number
  readonly grantedAt: number
  renewedAt: number
  endOfLife: number
  /** By whom its life was cut short. */
  cutBy: End | undefined
  /** Of its node, when a renewal last read it. */
  version: number | undefined
  claims: Map<number, LeaseClaim>
  timer: Timer | undefined
  ending: Promise<void> | undefined
  readonly look: () => void
}

/**
 * Keeps the leases that were granted or last renewed here. While this process lives, it alone
 * decides on its own monotonic clock when they end; should it die, be cut off or stand still, its
 * sessions end, and others carry out the end of what it kept.
 */
export class Lessor {
  readonly #journal: Journal
  readonly #ending: Ending
  readonly #sessions: Sessions
  readonly #kept = new Map<LeaseId, Kept>()
  #isClosed = false

  constructor(journal: Journal, ending: Ending, sessions: Sessions) {
    this.#journal = journal
    this.#ending = ending
    this.#sessions = sessions
  }

  get(id: LeaseId): Kept | undefined {
    return this.#kept.get(id)
  }

  /** When it will be gone unless renewed, on our clock. */
  deadline(kept: Kept): number {
    return Math.min(kept.renewedAt + spanOf(kept.record), kept.endOfLife)
  }

  /** The record of a lease to be granted, and the session that it will live by. */
  async prepare(request: GrantRequest): Promise<{ record: LeaseRecord; session: Session }> {
    const { holder, ttl, grace = 0, maxLife = Infinity, labels, parent } = request
    const span = ttl + grace
    const session = span === Infinity ? this.#journal.tree.main : await this.#sessions.for(span)
    const linger = this.#sessions.linger(span, session)
    const keeper = this.#journal.instance
    return { record: { holder, ttl, grace, maxLife, labels, parent, keeper, linger }, session }
  }

  /** Adds to a plan what makes a lease. */
  add(plan: Plan, id: LeaseId, record: LeaseRecord): void {
    const { paths } = this.#journal.tree
    if (record.parent !== undefined) {
      plan.create('parent', paths.childOf(record.parent, id), NOTHING)
    }
    plan.create('lease', paths.lease(id), encode(record))
    if (spanOf(record) !== Infinity) plan.create('alive', paths.aliveOf(id), NOTHING, 'ephemeral')
  }

  /** A lease was granted here. */
  granted(id: LeaseId, record: LeaseRecord, session: Session, epoch: number): void {
    const now = this.#journal.clock.now()
    const endOfLife = now + record.maxLife
    const claims = new Map()
    this.#keep({ id, record, session, epoch, grantedAt: now, renewedAt: now, endOfLife, claims })
  }

  claimed(lease: LeaseId, claim: LeaseClaim): void {
    this.#kept.get(lease)?.claims.set(claim.token, claim)
  }

  /** A claim that waited has come to hold its keys, which stand like this. */
  holds(lease: LeaseId, token: number, states: readonly KeyState[]): void {
    const claims = this.#kept.get(lease)?.claims
    const claim = claims?.get(token)
    if (claim) claims?.set(token, { ...claim, survey: surveyOf(claim, states) })
  }

  /** What is remembered of this claim's nodes, and of how its keys stood, is not to be used any more. */
  forget(lease: LeaseId, token: number): void {
    const claims = this.#kept.get(lease)?.claims
    const claim = claims?.get(token)
    if (claim) claims?.set(token, { ...claim, own: undefined, survey: undefined })
  }

  released(lease: LeaseId, token: number, left: readonly string[]): void {
    const claims = this.#kept.get(lease)?.claims
    const claim = claims?.get(token)
    if (!claim || left.length === 0) claims?.delete(token)
    else claims?.set(token, { ...claim, keys: left, version: claim.version + 1 })
  }

  /** These leases have ended. */
  ended(ids: readonly LeaseId[]): void {
    for (const id of ids) this.#drop(id)
  }

  async renew(ids: readonly LeaseId[]): Promise<Renewed> {
    const bySession = new Map<Session, Kept[]>()
    const others: LeaseId[] = []
    for (const id of ids) {
      const kept = this.#kept.get(id)
      if (!kept || kept.ending || kept.epoch !== kept.session.epoch) others.push(id)
      else bySession.set(kept.session, [...(bySession.get(kept.session) ?? []), kept])
    }
    const stale = await Promise.all([...bySession].map((each) => this.#renewKept(...each)))
    const lost = new Map<LeaseId, Lost>()
    const strangers = new Set([...others, ...stale.flat()]).values()
    const work = async () => {
      for (const id of strangers) {
        await this.#kept.get(id)?.ending
        if (await this.adopt(id)) continue
        lost.set(id, { lease: id, end: await this.#journal.tree.endOf(id) })
      }
    }
    await Promise.all(Array.from({ length: ADOPTED_AT_ONCE }, work))
    return this.#renewed(ids, lost)
  }

  /**
   * Makes a lease our own, whoever kept it before: with a node of ours in place of the old one, it
   * lives by our session from now on. This renews it. Answers `false` where there is none.
   */
  adopt(id: LeaseId): Promise<boolean> {
    return this.#adopt(id, true)
  }

  /** Where nobody asked for it, it is no renewal; and who took over a lease meanwhile keeps it. */
  async #adopt(id: LeaseId, isRenewal: boolean): Promise<boolean> {
    const { tree, instance, clock } = this.#journal
    const { paths } = tree
    for (;;) {
      const state = await tree.leaseForSure(id)
      if (!state || (!isRenewal && state.record.keeper !== instance)) {
        this.#drop(id)
        return false
      }
      const span = spanOf(state.record)
      if (span === Infinity) return true
      const session = await this.#sessions.for(span)
      const { epoch } = session
      const linger = this.#sessions.linger(span, session)
      const record = { ...settled(state.record, state.node.stat), keeper: instance, linger }
      const { version } = state.node.stat
      const alive = paths.aliveOf(id)
      const { value } = await tree.look([{ at: 'data', path: alive }])
      const ops: Op[] = [{ do: 'set', path: paths.lease(id), data: encode(record), version }]
      if (value[0]?.data) ops.push({ do: 'delete', path: alive })
      ops.push({ do: 'create', path: alive, data: NOTHING, kind: 'ephemeral' })
      try {
        await this.#journal.transact(['lease', 'alive', 'alive'], ops, session)
      } catch (error) {
        if (error instanceof Conflict) continue
        throw error
      }
      const after = await afterChange(tree.look([{ at: 'data', path: paths.lease(id) }]))
      const stat = after.value[0]?.data?.stat ?? state.node.stat
      const now = clock.now()
      this.#keep({
        id,
        record,
        session,
        epoch,
        grantedAt: stat.ctime,
        renewedAt: isRenewal ? now : (this.#kept.get(id)?.renewedAt ?? now),
        endOfLife: now + (endOfLife(record, stat) - stat.mtime),
        claims: new Map(state.claims.map((claim) => [claim.token, claim])),
      })
      return true
    }
  }

  /** A session was replaced: what lived by the old one is made to live by the new one. */
  replaced(session: Session): void {
    const now = this.#journal.clock.now()
    for (const kept of [...this.#kept.values()]) {
      if (kept.session !== session || kept.ending || this.deadline(kept) <= now) continue
      this.#adopt(kept.id, false).catch(() => {})
    }
  }

  close(): void {
    this.#isClosed = true
    for (const kept of this.#kept.values()) this.#letGo(kept)
    this.#kept.clear()
  }

  /** Answers with those that are not there, or not ours any more. */
  async #renewKept(session: Session, kept: readonly Kept[]): Promise<LeaseId[]> {
    const { tree, clock } = this.#journal
    const { epoch } = session
    // The session must be heard of by the leader's side, and no lease have ended there unknown to us.
    const [, { value }] = await Promise.all([
      session.call(sync(tree.paths.root)),
      tree.look(
        kept.map(({ id }) => ({ at: 'data', path: tree.paths.lease(id) })),
        session,
      ),
    ])
    const now = clock.now()
    const stale: LeaseId[] = []
    for (const [at, each] of kept.entries()) {
      const isOurs = value[at]?.data !== undefined && this.#kept.get(each.id) === each
      if (!isOurs || each.ending || epoch !== session.epoch) stale.push(each.id)
      else {
        each.renewedAt = now
        this.#heedBreak(each, value[at]!.data!)
      }
    }
    return stale
  }

  #renewed(ids: readonly LeaseId[], lost: ReadonlyMap<LeaseId, Lost>): Renewed {
    const now = this.#journal.clock.now()
    const capped: Capped[] = []
    for (const id of ids) {
      const kept = lost.has(id) ? undefined : this.#kept.get(id)
      if (!kept || this.deadline(kept) !== kept.endOfLife || kept.endOfLife === Infinity) continue
      const remaining = Math.max(0, kept.endOfLife - now)
      capped.push({ lease: id, remaining, end: kept.cutBy })
    }
    return { lost: ids.flatMap((id) => lost.get(id) ?? []), capped }
  }

  #keep(
    lease: Pick<
      Kept,
      'id' | 'record' | 'session' | 'epoch' | 'grantedAt' | 'renewedAt' | 'endOfLife' | 'claims'
    >,
  ): void {
    const { id, record } = lease
    this.#drop(id)
    const kept: Kept = {
      ...lease,
      cutBy: record.cap && { reason: 'broken', by: record.cap.by, why: record.cap.why },
      version: undefined,
      timer: undefined,
      ending: undefined,
      look: () => void this.#look(kept).catch(() => {}),
    }
    this.#kept.set(id, kept)
    this.#arm(kept)
    this.#watch(kept)
  }

  #drop(id: LeaseId): void {
    const kept = this.#kept.get(id)
    if (!kept) return
    this.#kept.delete(id)
    this.#letGo(kept)
  }

  #letGo(kept: Kept): void {
    kept.timer?.cancel()
    this.#journal.tree.main.unwatch(this.#journal.tree.paths.lease(kept.id), kept.look)
  }

  /** Others may break it, take claims from it, adopt it or end it: all that sets its node. */
  #watch(kept: Kept): void {
    const { main, paths } = this.#journal.tree
    const path = paths.lease(kept.id)
    main.watch(path, kept.look)
    main.call(getData(path, true)).catch((error) => {
      if (isFault(error, CODE.noNode)) kept.look()
    })
  }

  async #look(kept: Kept): Promise<void> {
    if (this.#kept.get(kept.id) !== kept) return
    const { tree, instance } = this.#journal
    this.#watch(kept)
    const state = await tree.lease(kept.id)
    if (this.#kept.get(kept.id) !== kept) return
    if (!state || state.record.keeper !== instance) return this.#drop(kept.id)
    this.#heed(kept, state.record)
    kept.record = state.record
    kept.claims = new Map(state.claims.map((claim) => [claim.token, claim]))
  }

  /** A renewal may be asked for before it was heard that the lease was broken. */
  #heedBreak(kept: Kept, { data, stat }: NodeData): void {
    if (kept.version === stat.version) return
    kept.version = stat.version
    this.#heed(kept, decode<LeaseRecord>(data))
  }

  #heed(kept: Kept, { cap }: LeaseRecord): void {
    if (!cap || JSON.stringify(cap) === JSON.stringify(kept.record.cap)) return
    kept.endOfLife = Math.min(kept.endOfLife, this.#journal.clock.now() + cap.after)
    kept.cutBy = { reason: 'broken', by: cap.by, why: cap.why }
    kept.record = { ...kept.record, cap }
    this.#arm(kept)
  }

  /** Deadlines are lazy: a renewal only writes the time, and the timer looks at it when it comes up. */
  #arm(kept: Kept): void {
    kept.timer?.cancel()
    const time = this.deadline(kept)
    if (time === Infinity || this.#isClosed) return
    const { clock } = this.#journal
    kept.timer = clock.timer(time, () => clock.defer(() => this.#due(kept)))
  }

  #due(kept: Kept): void {
    if (this.#isClosed || this.#kept.get(kept.id) !== kept || kept.ending) return
    if (this.#journal.clock.now() < this.deadline(kept)) {
      this.#arm(kept)
      return
    }
    kept.ending = this.#expire(kept).finally(() => {
      kept.ending = undefined
      if (this.#kept.get(kept.id) !== kept || this.#isClosed) return
      // It could not be carried out: until it is, a renewal may still come.
      const { clock } = this.#journal
      kept.timer = clock.timer(clock.now() + OBSTRUCTED_MS, () => this.#due(kept))
    })
  }

  async #expire(kept: Kept): Promise<void> {
    const end = this.deadline(kept) === kept.endOfLife ? (kept.cutBy ?? AGED) : EXPIRED
    try {
      const family = await this.#ending.family(kept.id)
      const [root] = family
      if (!root || root.record.keeper !== this.#journal.instance) return this.#drop(kept.id)
      const { paths } = this.#journal.tree
      const guard: Guard = (plan, { node }) =>
        plan.check('lease', paths.lease(kept.id), node.stat.version)
      const { leases } = await this.#ending.end([family], end, { guard })
      this.ended(leases)
    } catch {
      // Tried again in a moment.
    }
  }
}

export function spanOf({ ttl, grace }: Pick<LeaseRecord, 'ttl' | 'grace'>): number {
  return ttl + grace
}
