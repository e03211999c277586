import {
  type Changed,
  type Clock,
  type End,
  LeaseholdError,
  type LeaseId,
  type Limits,
  type Random,
  type Refusal,
  type RequestId,
  show,
} from '../../port/index.ts'
import { afterChange, contended } from './faults.ts'
import { entryName } from './paths.ts'
import { type Part, Plan } from './plan.ts'
import { decode, type Entry, encode, numbered, type Remembered } from './records.ts'
import type { Tree } from './tree.ts'
import type { Session } from './wire/index.ts'
import {
  type Acl,
  CODE,
  isFault,
  KeeperFault,
  multi,
  type NodeData,
  type Op,
} from './wire/index.ts'

/** How often a change is tried while others change the same things. */
const TRIES = 100
/** After so many tries, a little time is left to the others. */
const TRIES_AT_ONCE = 3
const REST_MS = 5

/** A transaction did not find things as they were read: read again, and try again. */
export class Conflict extends Error {
  readonly part: Part
  readonly code: number

  constructor(part: Part, code: number) {
    super(`the transaction failed at '${part}' with ${code}`)
    this.part = part
    this.code = code
  }
}

/** The call is to be refused, and a repeated one with it. */
export class Refused extends Error {
  readonly refusal: Refusal

  constructor(refusal: Refusal) {
    super(refusal.message)
    this.refusal = refusal
  }
}

/** A call with this name was carried out before. */
class AlreadyDone extends Error {}

export interface Committed {
  readonly zxid: number
  /** When, on the ensemble's clock. */
  readonly at: number
}

export interface JournalOptions {
  readonly tree: Tree
  readonly acl: Acl
  readonly limits: Limits
  readonly clock: Clock
  readonly random: Random
}

/** Finds out how the claims of an entry stand, where the entry does not say. */
export type Resolve = (entry: Entry, zxid: number) => Promise<Remembered>

/**
 * Carries out changes: each is one transaction, which makes a node in the journal beside all else.
 * So a change has a revision of its own, is told to those who watch, and is found by whoever sends
 * it again, be it a caller with a request id or this store after a connection broke.
 */
export class Journal {
  readonly tree: Tree
  readonly limits: Limits
  readonly clock: Clock
  readonly random: Random
  readonly acl: Acl
  readonly #instance: string
  #made = 0
  /** Called after each entry that was written here. */
  onWritten: (() => void) | undefined

  constructor({ tree, acl, limits, clock, random }: JournalOptions) {
    this.tree = tree
    this.acl = acl
    this.limits = limits
    this.clock = clock
    this.random = random
    this.#instance = random.id().slice(0, 12)
  }

  /** Which store this is, among all that use the same nodes. */
  get instance(): string {
    return this.#instance
  }

  /** A name that nobody else makes. */
  nextName(): string {
    return `${this.#instance}-${(this.#made++).toString(36)}`
  }

  plan(): Plan {
    return new Plan(this.tree.paths, this.limits)
  }

  /**
   * Tries until it succeeds or is refused. What was answered before under the same request id is
   * answered again.
   */
  async carryOut<A>(
    request: RequestId | undefined,
    resolve: Resolve,
    attempt: (name: string) => Promise<A>,
  ): Promise<A> {
    const name = entryName(request, this.nextName())
    for (let tries = 1; tries <= TRIES; tries++) {
      try {
        return await this.#attempt(name, request, attempt)
      } catch (error) {
        if (error instanceof AlreadyDone)
          return (await afterChange(this.#recall(name, resolve))) as A
        if (!(error instanceof Conflict)) throw error
        if (tries > TRIES_AT_ONCE) await this.#rest(tries)
      }
    }
    throw contended(TRIES)
  }

  /** Carries out a plan in one transaction, and writes the entry with it. */
  async commit(
    name: string,
    plan: Plan,
    answer: Remembered,
    more: Pick<Entry, 'open' | 'ended'> = {},
    session: Session = this.tree.main,
  ): Promise<Committed> {
    const entry: Entry = { answer, events: plan.events, ...more }
    const path = this.tree.paths.entry(name)
    const first: Op = { do: 'create', path, data: encode(entry), kind: 'persistent' }
    const parts: Part[] = ['entry', ...plan.parts]
    const committed = await this.transact(parts, [first, ...plan.ops], session)
    this.onWritten?.()
    return committed
  }

  /**
   * Carries out a change that nobody asked for, or only a part of what somebody did. Found done, it is
   * done: nobody but this call has its name.
   */
  async commitOwn(plan: Plan, more: Pick<Entry, 'ended'> = {}): Promise<number> {
    const name = `o${this.nextName()}`
    try {
      return (await this.commit(name, plan, { revision: -1 }, more)).zxid
    } catch (error) {
      if (!(error instanceof AlreadyDone)) throw error
      return ((await this.#recall(name, async ({ answer }) => answer)) as Changed).revision
    }
  }

  /** Carries out a transaction that is no change of the store's: it has no entry. */
  async transact(
    parts: readonly Part[],
    ops: readonly Op[],
    session: Session = this.tree.main,
  ): Promise<Committed> {
    try {
      const { zxid, value } = await session.call(multi(ops, this.acl))
      return { zxid, ...value }
    } catch (error) {
      if (!(error instanceof KeeperFault) || error.index < 0) throw error
      throw failureOf(error, parts[error.index]!)
    }
  }

  /** Puts in place what a claim was found to be answered with. Failing, it is found out again. */
  amend(name: string, entry: Entry, session: Session): void {
    const path = this.tree.paths.entry(name)
    session.call(multi([{ do: 'set', path, data: encode(entry) }], this.acl)).catch(() => {})
  }

  /** Why there is no such lease. */
  async noLease(id: LeaseId): Promise<Refused> {
    const end = await this.tree.endOf(id)
    if (!end) {
      return new Refused({
        code: 'lease-not-found',
        message: `there is no lease ${show(id)}: it never was, or it ended long ago; take a new one`,
      })
    }
    return new Refused({ code: 'lease-ended', message: describeEnd(id, end), end })
  }

  async #attempt<A>(
    name: string,
    request: RequestId | undefined,
    attempt: (name: string) => Promise<A>,
  ): Promise<A> {
    try {
      return await attempt(name)
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      if (request !== undefined) await this.commit(name, this.plan(), { refusal: error.refusal })
      throw LeaseholdError.from(error.refusal)
    }
  }

  async #recall(name: string, resolve: Resolve): Promise<Remembered> {
    const path = this.tree.paths.entry(name)
    const { value } = await this.tree.look([{ at: 'data', path }])
    const node: NodeData | undefined = value[0]?.data
    if (!node) {
      throw new LeaseholdError(
        'unknown-outcome',
        'this request was carried out before, so long ago that its answer is not kept: read how things stand',
      )
    }
    const entry = decode<Entry>(node.data)
    const { czxid } = node.stat
    const answer = entry.open ? await resolve(entry, czxid) : numbered(entry.answer, czxid)
    if ('refusal' in answer) throw LeaseholdError.from(answer.refusal)
    return answer
  }

  #rest(tries: number): Promise<void> {
    const ms = REST_MS * Math.min(tries, 20) * this.random.next()
    return new Promise((resolve) => {
      this.clock.timer(this.clock.now() + ms, resolve, true)
    })
  }
}

/** What it means for a change that a part of it failed. */
export function failureOf(error: KeeperFault, part: Part): Error {
  if (part === 'entry' && error.code === CODE.nodeExists) return new AlreadyDone()
  const isChanged = isFault(error, CODE.noNode, CODE.badVersion, CODE.nodeExists, CODE.notEmpty)
  return isChanged ? new Conflict(part, error.code) : error
}

function describeEnd(id: LeaseId, end: End): string {
  const by = end.by ? ` by ${end.by}` : ''
  const why = end.why ? `, because ${end.why}` : ''
  return `lease ${id} has ended: ${end.reason}${by}${why}; take a new one`
}
