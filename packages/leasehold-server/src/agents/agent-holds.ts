import type { Leasehold, LockKey, PoolDefinition, Where } from 'leasehold'
import {
  type Claim,
  type Clock,
  invalid,
  LeaseholdError,
  type LeaseStore,
  type Random,
} from 'leasehold/port'
import { type AgentNotice, askNotices, changeNotices } from './agent-notices.ts'
import { type Ahead, aheadInPool, aheadText, partiesAhead } from './ahead.ts'
import { asksFor } from './asks.ts'
import { type Ceilings, CeilingTimer, DEFAULT_CEILINGS } from './ceilings.ts'
import { isoTime, noteOf } from './hold-note.ts'
import { HoldRecord, type LockOrPermit } from './hold-record.ts'
import type {
  AgentHoldsOptions,
  HoldView,
  Outcome,
  Skipped,
  Task,
  Waiting,
  Wanted,
} from './hold-requests.ts'
import { HoldTable } from './hold-table.ts'
import { agentTenant } from './noted-holds.ts'
import { claimsFor, type FilePath, filePath, keyOf, type PathOptions } from './paths.ts'

/** No call waits longer: clients give up after 60 s. The place in the queue is kept. */
export const WAIT_MAX_MS = 50_000
const PROGRESS_EVERY_MS = 5000
/** How long a notice of the store may take. */
const NOTICE_MS = 1000
const KIND_MAX = 100
/** Busy tasks of which an answer says who has them. */
const BUSY_SHOWN_MAX = 8

/**
 * Everything that the agents of one connection hold, wait for, or have lost. This process renews it;
 * the model may be silent for as long as the ceilings allow.
 *
 * A handle that was told to nobody must not hold anything: what a call took is released if the call
 * then fails, and if the call was cancelled a notice tells the agent of it.
 */
export class AgentHolds {
  readonly ceilings: Ceilings
  readonly agent: string
  readonly #leasehold: Leasehold
  readonly #store: LeaseStore
  readonly #clock: Clock
  readonly #random: Random
  readonly #paths: PathOptions
  readonly #table = new HoldTable()
  readonly #ceilings: CeilingTimer
  readonly #listeners = new Set<() => void>()
  #isClosed = false

  constructor({ leasehold, store, clock, random, agent, paths, ceilings }: AgentHoldsOptions) {
    this.#leasehold = leasehold
    this.#store = store
    this.#clock = clock
    this.#random = random
    this.#paths = paths
    this.agent = agent
    this.ceilings = { ...DEFAULT_CEILINGS, ...ceilings }
    this.#ceilings = new CeilingTimer({
      clock,
      ceilings: this.ceilings,
      open: () => this.#table.open,
      ended: () => this.#changed(),
    })
  }

  now(): number {
    return this.#clock.now()
  }

  /** An agent has called: the idle time starts again. */
  touch(): void {
    this.#ceilings.touch()
  }

  /** The agent seems to be gone: what it has ends after this time, unless it calls again. */
  expectSilence(ms: number): void {
    this.#ceilings.expectSilence(ms)
  }

  /** When an agent last called. */
  get lastCall(): number {
    return this.#ceilings.lastCall
  }

  /** Takes all keys or paths together, or waits in their queues with one place. */
  acquire(wanted: Wanted, waiting: Waiting = {}): Promise<Outcome> {
    return this.#acquire(this.#recordFor(wanted), waiting)
  }

  /** Takes all of them if they are free now; otherwise says who has them, and does not wait. */
  async tryAcquire(wanted: Wanted, { signal }: Waiting = {}): Promise<Outcome> {
    const record = this.#recordFor(wanted)
    if (await this.#tryLock(record)) return this.#taken(record, signal)
    const { ahead } = await this.#parties(record.claims, record.note.ref)
    return { state: 'busy', ahead }
  }

  /**
   * Takes the first task that is free and not done. The store takes or refuses each in one step, so no
   * two agents get the same one.
   */
  async claimNext(
    tasks: readonly Task[],
    {
      purpose,
      agent,
      capabilities,
    }: Omit<Wanted, 'keys' | 'paths'> & {
      readonly capabilities?: readonly string[] | undefined
    },
    { signal }: Waiting = {},
  ): Promise<Outcome & { readonly skipped?: Skipped }> {
    const skipped = { busy: 0, done: 0, unable: 0, untried: 0 }
    const busy: LockKey[] = []
    const deadline = this.#clock.now() + WAIT_MAX_MS - NOTICE_MS
    for (const [at, { key, needs = [] }] of tasks.entries()) {
      if (signal?.aborted || this.#clock.now() >= deadline) {
        skipped.untried = tasks.length - at
        break
      }
      if (!needs.every((need) => capabilities?.includes(need))) {
        skipped.unable++
        continue
      }
      const record = this.#recordFor({ keys: [key], purpose, agent }, key)
      if (await this.#tryLock(record)) {
        const outcome = await this.#taken(record, signal)
        if (outcome.state === 'held') return { ...outcome, skipped }
        skipped.done++
      } else {
        skipped.busy++
        if (busy.length < BUSY_SHOWN_MAX) busy.push(claimOn(key))
      }
    }
    const { ahead } = await this.#parties(busy, '')
    return { state: 'busy', ahead, skipped }
  }

  /** Takes the right to do something that must be done once, unless it is done. */
  async once(
    name: string,
    wanted: Omit<Wanted, 'keys' | 'paths'>,
    waiting: Waiting = {},
  ): Promise<Outcome> {
    const before = await this.#doneOf(name)
    return before ?? this.#acquire(this.#recordFor({ ...wanted, keys: [name] }, name), waiting)
  }

  /** Takes resources of a pool. `resources` defines the pool if nobody has. */
  async take(
    pool: string,
    {
      where,
      count,
      resources,
      ...wanted
    }: Omit<Wanted, 'keys' | 'paths' | 'mode'> & {
      readonly where?: Where | undefined
      readonly count?: number | undefined
      readonly resources?: PoolDefinition['resources'] | undefined
    },
    waiting: Waiting = {},
  ): Promise<Outcome> {
    const began = this.#clock.now()
    const source = this.#leasehold.pool(pool, resources && { resources })
    const record = this.#add([], [`${count ?? 1} of pool ${pool}`], wanted, { pool })
    const options = { ...poolWaiter(record), where, count, strategy: 'lock' } as const
    const { permit } = await this.#tried(record, source.tryTake(options))
    if (permit !== undefined) {
      await this.#holdNow(record, permit)
      return this.#taken(record, waiting.signal)
    }
    this.#follow(record, source.take({ ...options, signal: record.abandon.signal }))
    return this.#waitFor(record, began, waiting)
  }

  /** Waits for a hold that was asked for before, and keeps its place if the time is over. */
  async wait(handle: string, waiting: Waiting = {}): Promise<Outcome> {
    return this.#waitFor(this.#table.find(handle), this.#clock.now(), waiting)
  }

  /** Releases a hold or gives up its wait. With `done`, its keys are done for good, with a result. */
  async release(handle: string, done?: { readonly result?: unknown }): Promise<HoldRecord> {
    const record = this.#table.find(handle)
    if (record.state === 'lost') {
      record.isReported = true
      throw new LeaseholdError(
        'lost',
        `${handle} was lost before: ${record.why}. ${done ? 'It is not marked as done, because another agent may have it. ' : ''}Take it again before you continue with ${record.note.for.join(', ')}, and check what changed`,
      )
    }
    if (record.state === 'released') return record
    if (done !== undefined) await this.#finish(record, done.result ?? null)
    await record.release(this.#clock.now())
    this.#changed()
    return record
  }

  /**
   * Releases everything of one of the agents of this connection; by default of the one that gives no
   * name. The others still work with what they hold.
   */
  async releaseAll(agent = this.agent): Promise<readonly HoldRecord[]> {
    return this.#releaseEach(this.#table.open.filter(({ note }) => note.agent === agent))
  }

  /** Everything that is held, waited for, or was lost; the latest last. */
  mine(agent?: string): readonly HoldRecord[] {
    const { unreleased } = this.#table
    const shown = unreleased.filter(({ note }) => agent === undefined || note.agent === agent)
    for (const record of shown) record.isReported = true
    this.#ceilings.schedule()
    return shown
  }

  /** What is held, waited for or lost, and the notices, without counting as told. */
  async overview(): Promise<{ holds: HoldView[]; notices: AgentNotice[] }> {
    const holds = this.#table.unreleased.map(({ view }) => view)
    return { holds, notices: await this.notices() }
  }

  /** Calls the listener after each change of a hold, until the returned function is called. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  get openCount(): number {
    return this.#table.open.length
  }

  /** Whether a claim belongs to a hold of this connection. */
  isOwn(claim: Pick<Claim, 'value'>): boolean {
    const ref = noteOf(claim)?.ref
    return ref !== undefined && this.#table.open.some(({ note }) => note.ref === ref)
  }

  /** The handle under which this connection waits for a file. */
  waitingFor(path: string): string | undefined {
    const key = keyOf(this.fileOf(path))
    const waits = (it: HoldRecord) => it.state === 'waiting' && it.claims.some((c) => c.key === key)
    return this.#table.open.find(waits)?.handle
  }

  has(handle: string): boolean {
    return this.#table.has(handle)
  }

  /** What an agent must know, with every answer. */
  async notices(): Promise<AgentNotice[]> {
    const { open } = this.#table
    const refs = open.map(({ note }) => note.ref)
    const notices = askNotices(open, await asksFor(this.#store, refs))
    notices.push(...changeNotices(this.#table.unreleased, this.ceilings.turn))
    const { text } = this.#ceilings
    if (text !== undefined) notices.push({ about: 'ceiling', text })
    return notices
  }

  /** The keys of a path or key, as a holder of it claims them. */
  fileOf(path: string): FilePath {
    return filePath(path, this.#paths)
  }

  /** Releases everything. Later calls are refused. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#ceilings.stop()
    await this.#releaseEach(this.#table.open)
  }

  /** `once`: the name of what must be done once, and is done under this hold. */
  #recordFor(wanted: Wanted, once?: string): HoldRecord {
    const { keys = [], paths = [], mode = 'exclusive' } = wanted
    if (keys.length === 0 && paths.length === 0) {
      throw invalid(
        "give keys, such as ['deploy/staging'], or paths, such as ['src/index.ts']: what do you want to hold?",
      )
    }
    const files = paths.map((path) => this.fileOf(path))
    const named = [...new Set(keys)]
    const claims = [
      ...named.map((key): LockKey => ({ ...claimOn(key), mode })),
      ...claimsFor(files, mode),
    ]
    const things = [...named, ...files.map((file) => file.path || '.')]
    return this.#add(claims, things, wanted, { once, keys: named })
  }

  #add(
    claims: readonly LockKey[],
    things: readonly string[],
    { purpose, agent = this.agent }: Pick<Wanted, 'purpose' | 'agent'>,
    more: { pool?: string; once?: string | undefined; keys?: readonly string[] },
  ): HoldRecord {
    if (this.#isClosed) throw new LeaseholdError('closed', 'this connection is closing')
    const ref = this.#random.id().slice(0, 10)
    const handle = `hold-${ref}-${this.#random.id().slice(0, 6)}`
    const note = { ref, agent, purpose, for: things, max: this.ceilings.maxHold }
    const record = new HoldRecord({ handle, note, claims, askedAt: this.#clock.now(), ...more })
    this.#table.add(record)
    return record
  }

  async #acquire(record: HoldRecord, waiting: Waiting): Promise<Outcome> {
    const began = this.#clock.now()
    if (await this.#tryLock(record)) return this.#taken(record, waiting.signal)
    this.#table.add(record)
    const { value, claims, abandon } = record
    const { maxHold } = this.ceilings
    this.#follow(record, this.#leasehold.lock(claims, { value, maxHold, signal: abandon.signal }))
    return this.#waitFor(record, began, waiting)
  }

  /** `began`: when the call began, because no call may take longer than clients wait. */
  async #waitFor(
    record: HoldRecord,
    began: number,
    { wait = 0, signal, progress }: Waiting,
  ): Promise<Outcome> {
    const end = began + Math.min(Math.max(0, wait), WAIT_MAX_MS - NOTICE_MS)
    while (record.state === 'waiting') {
      const left = end - this.#clock.now()
      if (left <= 0 || signal?.aborted) break
      // While it waits, the agent is not idle.
      const step = Math.min(PROGRESS_EVERY_MS, this.ceilings.idle / 2)
      await this.#pause(record, Math.min(left, step), signal)
      this.touch()
      if (record.state === 'waiting' && left > PROGRESS_EVERY_MS && progress !== undefined) {
        progress(aheadText((await this.#aheadOf(record)).ahead))
      }
    }
    return this.#outcomeOf(record, signal)
  }

  #follow(record: HoldRecord, acquiring: Promise<LockOrPermit>): void {
    record.follow(
      acquiring,
      () => this.#clock.now(),
      () => this.#changed(),
    )
    this.#ceilings.schedule()
  }

  /** Whether it is held now. If not, nobody knows its handle. */
  async #tryLock(record: HoldRecord): Promise<boolean> {
    const { maxHold } = this.ceilings
    const options = { value: record.value, maxHold }
    const { lock } = await this.#tried(record, this.#leasehold.tryLock(record.claims, options))
    if (lock === undefined) this.#table.remove(record)
    else await this.#holdNow(record, lock)
    return lock !== undefined
  }

  async #holdNow(record: HoldRecord, lockOrPermit: LockOrPermit): Promise<void> {
    this.#follow(record, Promise.resolve(lockOrPermit))
    await record.settled
  }

  /** The result of a try. A failed one has no handle. */
  #tried<Result>(record: HoldRecord, trying: Promise<Result>): Promise<Result> {
    return trying.catch((error) => {
      this.#table.remove(record)
      throw error
    })
  }

  /** The outcome of a try that succeeded. */
  async #taken(record: HoldRecord, signal: AbortSignal | undefined): Promise<Outcome> {
    try {
      return await this.#outcomeOf(record, signal)
    } catch (error) {
      await this.#forget(record)
      throw error
    }
  }

  /** Releases what nobody knows the handle of. If the store does not answer, the client repeats it. */
  async #forget(record: HoldRecord): Promise<void> {
    this.#table.remove(record)
    await record.release(this.#clock.now()).catch(() => {})
    this.#changed()
  }

  async #outcomeOf(record: HoldRecord, signal: AbortSignal | undefined): Promise<Outcome> {
    if (record.state === 'waiting') {
      let { ahead, position } = await this.#aheadOf(record)
      if (ahead.length === 0) {
        // Its turn has come, and the store's notice is on its way.
        await this.#pause(record, NOTICE_MS, undefined)
        ;({ ahead, position } = await this.#aheadOf(record))
      }
      if (record.state === 'waiting') return { state: 'waiting', record, ahead, position }
    }
    if (record.state === 'held' && record.once !== undefined) {
      // Whoever held it before may have done it.
      const done = await this.#doneOf(record.once)
      if (done !== undefined) {
        await this.#forget(record)
        return done
      }
    }
    const isHeld = record.state === 'held'
    // Nobody else has to learn of an acquisition that failed at once.
    if (record.heldAt === undefined && !record.isReported) this.#table.remove(record)
    // The answer to a cancelled call reaches nobody: a notice tells the agent instead.
    record.isReported ||= signal?.aborted !== true
    this.#ceilings.schedule()
    if (isHeld) return { state: 'held', record }
    const what = record.note.for.join(', ')
    if (record.state === 'released') {
      throw new LeaseholdError(
        'claim-not-found',
        `${record.handle} (${what}) was released. Call acquire to take it again`,
      )
    }
    throw new LeaseholdError('lost', `${record.handle} (${what}) is not held: ${record.why}`)
  }

  async #doneOf(name: string): Promise<Outcome | undefined> {
    const done = await this.#leasehold.onceResult(name)
    if (done === undefined) return undefined
    const { result, by, at } = done
    return { state: 'done', name, done: { result, by, at: isoTime(at) } }
  }

  /** Marks the tasks of a hold as done. */
  async #finish({ handle, state, keys }: HoldRecord, result: unknown): Promise<void> {
    if (state === 'waiting') {
      throw invalid(`${handle} is still waiting: only a hold that is held can be marked as done`)
    }
    if (keys.length === 0) {
      throw invalid(`${handle} has no task: only a key can be done. Release it without done`)
    }
    for (const key of keys) await this.#leasehold.once(key, () => result)
  }

  async #releaseEach(records: readonly HoldRecord[]): Promise<readonly HoldRecord[]> {
    await Promise.all(records.map((record) => record.release(this.#clock.now())))
    this.#changed()
    return records
  }

  #pause(record: HoldRecord, ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        timer.cancel()
        signal?.removeEventListener('abort', end)
        resolve()
      }
      const timer = this.#clock.timer(this.#clock.now() + ms, end, true)
      signal?.addEventListener('abort', end)
      void record.settled.then(end)
    })
  }

  #aheadOf(record: HoldRecord): Promise<Ahead> {
    if (record.pool === undefined) return this.#parties(record.claims, record.note.ref)
    return aheadInPool(this.#leasehold, record.pool, poolWaiter(record))
  }

  #parties(claims: readonly LockKey[], ref: string): Promise<Ahead> {
    const own = new Map(this.#table.open.map(({ note, handle }) => [note.ref, handle]))
    return partiesAhead(this.#store, claims, ref, own)
  }

  #changed(): void {
    this.#ceilings.schedule()
    for (const listener of this.#listeners) listener()
  }
}

function claimOn(key: string): LockKey {
  return { key, mode: 'exclusive' }
}

/** How a pool names a waiter and what it waits for. */
function poolWaiter({ note: { agent, purpose } }: HoldRecord): { tenant: string; kind: string } {
  return { tenant: agentTenant(agent), kind: purpose.slice(0, KIND_MAX) }
}
