// long because every way in which a hold begins, waits and ends passes here.
import type { Leasehold, LockKey, PoolDefinition, Where } from 'leasehold'
import {
  type Claim,
  type Clock,
  formatDuration,
  invalid,
  LeaseholdError,
  type LeaseStore,
  type Random,
  show,
  type Timer,
} from 'leasehold/port'
import { type AheadParty, aheadText, partiesAhead, poolHolders } from './ahead.ts'
import { asksFor, askText } from './asks.ts'
import { isoTime, noteOf } from './hold-note.ts'
import { type Grip, HoldRecord, maximumText } from './hold-record.ts'
import {
  type AgentHoldsOptions,
  type AgentNotice,
  type Ceilings,
  DEFAULT_CEILINGS,
  type HoldView,
  type Outcome,
  type Skipped,
  type Task,
  type Waiting,
  type Wanted,
} from './hold-requests.ts'
import { agentTenant } from './noted-holds.ts'
import { claimsFor, type FilePath, filePath, keyOf, type PathOptions } from './paths.ts'

/** No call waits longer: clients give up after 60 s. The place in the queue is kept. */
export const WAIT_MAX_MS = 50_000
const PROGRESS_EVERY_MS = 5000
/** Ended holds that `mine` still shows. */
const ENDED_KEPT = 50
/** Open holds of one connection. */
const OPEN_MAX = 1000
/** How long a notice of the store may take. */
const NOTICE_MS = 1000
const KIND_MAX = 100

/**
 * Everything that the agents of one connection hold, wait for, or have lost. This process renews it;
 * the model may be silent for as long as the ceilings allow.
 */
export class AgentHolds {
  readonly ceilings: Ceilings
  readonly agent: string
  readonly #leasehold: Leasehold
  readonly #store: LeaseStore
  readonly #clock: Clock
  readonly #random: Random
  readonly #paths: PathOptions
  readonly #records = new Map<string, HoldRecord>()
  readonly #listeners = new Set<() => void>()
  #lastCall: number
  #timer: Timer | undefined = undefined
  #isClosed = false

  constructor({ leasehold, store, clock, random, agent, paths, ceilings }: AgentHoldsOptions) {
    this.#leasehold = leasehold
    this.#store = store
    this.#clock = clock
    this.#random = random
    this.#paths = paths
    this.agent = agent
    this.ceilings = { ...DEFAULT_CEILINGS, ...ceilings }
    this.#lastCall = clock.now()
  }

  now(): number {
    return this.#clock.now()
  }

  /** An agent has called: the idle time starts again. */
  touch(): void {
    this.#lastCall = this.#clock.now()
    this.#schedule()
  }

  /** The agent seems to be gone: what it has ends after this time, unless it calls again. */
  expectSilence(ms: number): void {
    this.#lastCall = Math.min(this.#lastCall, this.#clock.now() + ms - this.ceilings.idle)
    this.#schedule()
  }

  /** When an agent last called. */
  get lastCall(): number {
    return this.#lastCall
  }

  /** Takes all keys or paths together, or waits in their queues with one place. */
  async acquire(wanted: Wanted, waiting: Waiting = {}): Promise<Outcome> {
    const { claims, things } = this.#claimsOf(wanted)
    const record = this.#add(claims, things, wanted)
    if (await this.#tryLock(record)) return { state: 'held', record }
    return this.#await(record, this.#lockLater(record), waiting)
  }

  /** Takes all of them if they are free now; otherwise says who has them, and does not wait. */
  async tryAcquire(wanted: Wanted): Promise<Outcome> {
    const { claims, things } = this.#claimsOf(wanted)
    const record = this.#add(claims, things, wanted)
    if (await this.#tryLock(record)) return { state: 'held', record }
    return { state: 'busy', ahead: await this.#parties(claims, record.note.ref) }
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
  ): Promise<Outcome & { readonly skipped?: Skipped }> {
    const skipped = { busy: 0, done: 0, unable: 0 }
    for (const { key, needs = [] } of tasks) {
      if (!needs.every((need) => capabilities?.includes(need))) {
        skipped.unable++
        continue
      }
      const record = this.#add([claimOn(key)], [key], { purpose, agent })
      if (!(await this.#tryLock(record))) skipped.busy++
      else if ((await this.#leasehold.onceResult(key)) === undefined) {
        return { state: 'held', record, skipped }
      } else {
        await this.#forget(record)
        skipped.done++
      }
    }
    return { state: 'busy', ahead: [], skipped }
  }

  /** Takes the right to do something that must be done once, unless it is done. */
  async once(
    name: string,
    wanted: Omit<Wanted, 'keys' | 'paths'>,
    waiting: Waiting = {},
  ): Promise<Outcome> {
    const before = await this.#doneOf(name)
    if (before !== undefined) return before
    return this.#onceHeld(name, await this.acquire({ ...wanted, keys: [name] }, waiting))
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
    const source = this.#leasehold.pool(pool, resources && { resources })
    const record = this.#add([], [`${count ?? 1} of pool ${pool}`], wanted, pool)
    const tenant = agentTenant(record.note.agent)
    const kind = wanted.purpose.slice(0, KIND_MAX)
    const options = { tenant, kind, where, count, strategy: 'lock' } as const
    const { permit } = await this.#tried(record, source.tryTake(options))
    if (permit !== undefined) {
      await this.#holdNow(record, permit)
      return { state: 'held', record }
    }
    return this.#await(record, source.take({ ...options, signal: record.abandon.signal }), waiting)
  }

  /** Waits for a hold that was asked for before, and keeps its place if the time is over. */
  async wait(handle: string, { wait = 0, signal, progress }: Waiting = {}): Promise<Outcome> {
    const record = this.recordOf(handle)
    const limit = Math.min(Math.max(0, wait), WAIT_MAX_MS)
    const started = this.#clock.now()
    while (record.state === 'waiting') {
      const left = limit - (this.#clock.now() - started)
      if (left <= 0 || signal?.aborted) break
      await this.#pause(record, Math.min(left, PROGRESS_EVERY_MS), signal)
      if (record.state === 'waiting' && left > PROGRESS_EVERY_MS && progress !== undefined) {
        progress(aheadText(await this.#aheadOf(record)))
      }
    }
    // While it waited, the agent was not idle.
    this.touch()
    return this.#outcomeOf(record)
  }

  /** Releases a hold or gives up its wait. With `done`, its keys are done for good, with a result. */
  async release(handle: string, done?: { readonly result?: unknown }): Promise<HoldRecord> {
    const record = this.recordOf(handle)
    record.isReported = true
    if (record.state === 'lost') {
      throw new LeaseholdError(
        'lost',
        `${handle} was lost before: ${record.why}. ${done ? 'It is not marked as done, because another agent may have it. ' : ''}Take it again before you continue with ${record.note.for.join(', ')}, and check what changed`,
      )
    }
    if (record.state === 'released') return record
    if (done !== undefined) {
      if (record.state === 'waiting') {
        throw invalid(`${handle} is still waiting: only a hold that is held can be marked as done`)
      }
      const result = done.result ?? null
      for (const { key } of record.claims) await this.#leasehold.once(key, () => result)
    }
    await record.release(this.#clock.now())
    this.#changed()
    return record
  }

  /** Releases everything of this connection, or of one of its agents. */
  async releaseAll(agent?: string): Promise<readonly HoldRecord[]> {
    const open = this.#open().filter((it) => agent === undefined || it.note.agent === agent)
    await Promise.all(open.map((record) => record.release(this.#clock.now())))
    this.#changed()
    return open
  }

  /** Everything that is held, waited for, or was lost; the latest last. */
  mine(agent?: string): readonly HoldRecord[] {
    const shown = [...this.#records.values()].filter(
      (it) => it.state !== 'released' && (agent === undefined || it.note.agent === agent),
    )
    for (const record of shown) record.isReported = true
    this.#schedule()
    return shown
  }

  /** What is held, waited for or lost, and the notices, without counting as told. */
  async overview(): Promise<{ holds: HoldView[]; notices: AgentNotice[] }> {
    const shown = [...this.#records.values()].filter((it) => it.state !== 'released')
    return { holds: shown.map(({ view }) => view), notices: await this.notices() }
  }

  /** Calls the listener after each change of a hold, until the returned function is called. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  get openCount(): number {
    return this.#open().length
  }

  /** Whether a claim belongs to a hold of this connection. */
  isOwn(claim: Pick<Claim, 'value'>): boolean {
    const ref = noteOf(claim)?.ref
    return ref !== undefined && this.#open().some(({ note }) => note.ref === ref)
  }

  /** The handle under which this connection waits for a file. */
  waitingFor(path: string): string | undefined {
    const key = keyOf(this.fileOf(path))
    const waits = (it: HoldRecord) => it.state === 'waiting' && it.claims.some((c) => c.key === key)
    return this.#open().find(waits)?.handle
  }

  has(handle: string): boolean {
    return this.#records.has(handle)
  }

  /** What an agent must know, with every answer. */
  async notices(): Promise<AgentNotice[]> {
    const open = this.#open()
    const notices = open.length === 0 ? [] : await this.#askNotices(open)
    for (const record of this.#records.values()) {
      const { handle: hold, note, state, isReported, why } = record
      const about = { hold, agent: note.agent }
      const what = note.for.join(', ')
      if (state === 'lost' && !isReported) {
        const text = `You lost ${what} (${note.purpose}): ${why}. Stop changing it. Take it again before you continue`
        notices.push({ about: 'lost', ...about, text })
      } else if (state === 'held' && !isReported) {
        const by = isoTime(record.heldAt! + this.ceilings.turn)
        const text = `It is your turn: you hold ${what} now. Call wait with this hold before ${by}, or it is released`
        notices.push({ about: 'your-turn', ...about, text })
      }
    }
    const ceiling = this.#ceilingText(open)
    if (ceiling !== undefined) notices.push({ about: 'ceiling', text: ceiling })
    return notices
  }

  recordOf(handle: string): HoldRecord {
    const record = this.#records.get(handle)
    if (record !== undefined) return record
    const known = this.#open().map(({ handle: each }) => each)
    throw invalid(
      `hold is ${show(handle)}: this connection has no such hold. ${known.length === 0 ? 'It has none; call acquire first' : `Call mine; it has ${known.slice(0, 10).join(', ')}`}`,
    )
  }

  /** The keys of a path or key, as a holder of it claims them. */
  fileOf(path: string): FilePath {
    return filePath(path, this.#paths)
  }

  /** Releases everything. Later calls are refused. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    await this.releaseAll()
  }

  #claimsOf({ keys = [], paths = [], mode = 'exclusive' }: Wanted): {
    readonly claims: readonly LockKey[]
    readonly things: readonly string[]
  } {
    if (keys.length === 0 && paths.length === 0) {
      throw invalid(
        "give keys, such as ['deploy/staging'], or paths, such as ['src/index.ts']: what do you want to hold?",
      )
    }
    const files = paths.map((path) => this.fileOf(path))
    const claims = [...new Set(keys)].map((key): LockKey => ({ ...claimOn(key), mode }))
    const things = [...keys, ...files.map((file) => file.path || '.')]
    return { claims: [...claims, ...claimsFor(files, mode)], things }
  }

  #add(
    claims: readonly LockKey[],
    things: readonly string[],
    { purpose, agent = this.agent }: Pick<Wanted, 'purpose' | 'agent'>,
    pool?: string,
  ): HoldRecord {
    if (this.#isClosed) throw new LeaseholdError('closed', 'this connection is closing')
    if (this.#open().length >= OPEN_MAX) {
      throw new LeaseholdError(
        'limit-exceeded',
        `this connection has ${OPEN_MAX} open holds, the maximum: call mine, and release what is not needed`,
      )
    }
    const ref = this.#random.id().slice(0, 10)
    const handle = `hold-${ref}-${this.#random.id().slice(0, 6)}`
    const max = this.ceilings.maxHold
    const note = { ref, agent, purpose, for: things, max }
    const record = new HoldRecord({ handle, note, claims, pool, askedAt: this.#clock.now() })
    this.#records.set(handle, record)
    this.#trim()
    return record
  }

  #lockLater(record: HoldRecord): Promise<Grip> {
    const { signal } = record.abandon
    const { maxHold } = this.ceilings
    return this.#leasehold.lock(record.claims, { value: record.value, maxHold, signal })
  }

  /** Waits for it under its handle. */
  #await(record: HoldRecord, acquiring: Promise<Grip>, waiting: Waiting): Promise<Outcome> {
    this.#records.set(record.handle, record)
    this.#follow(record, acquiring)
    return this.wait(record.handle, waiting)
  }

  #follow(record: HoldRecord, acquiring: Promise<Grip>): void {
    record.follow(
      acquiring,
      () => this.#clock.now(),
      () => this.#changed(),
    )
  }

  /** Whether it is held now. If not, nobody knows its handle. */
  async #tryLock(record: HoldRecord): Promise<boolean> {
    const { maxHold } = this.ceilings
    const options = { value: record.value, maxHold }
    const { lock } = await this.#tried(record, this.#leasehold.tryLock(record.claims, options))
    if (lock === undefined) this.#records.delete(record.handle)
    else await this.#holdNow(record, lock)
    return lock !== undefined
  }

  async #holdNow(record: HoldRecord, grip: Grip): Promise<void> {
    this.#follow(record, Promise.resolve(grip))
    await record.settled
    record.isReported = true
    this.#schedule()
  }

  /** The result of a try. A failed one has no handle. */
  #tried<Result>(record: HoldRecord, trying: Promise<Result>): Promise<Result> {
    return trying.catch((error) => {
      this.#records.delete(record.handle)
      throw error
    })
  }

  async #forget(record: HoldRecord): Promise<void> {
    await record.release(this.#clock.now())
    this.#records.delete(record.handle)
  }

  async #outcomeOf(record: HoldRecord): Promise<Outcome> {
    if (record.state === 'waiting') {
      let ahead = await this.#aheadOf(record)
      if (ahead.length === 0) {
        // Its turn has come, and the store's notice is on its way.
        await this.#pause(record, NOTICE_MS, undefined)
        ahead = await this.#aheadOf(record)
      }
      if (record.state === 'waiting') {
        return { state: 'waiting', record, ahead, position: ahead.length }
      }
    }
    if ((record.state as string) === 'held') {
      record.isReported = true
      return { state: 'held', record }
    }
    // Nobody else has to learn of an acquisition that failed at once.
    if (record.heldAt === undefined && !record.isReported) this.#records.delete(record.handle)
    record.isReported = true
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

  /** Whoever held it before may have done it. */
  async #onceHeld(name: string, outcome: Outcome): Promise<Outcome> {
    if (outcome.state !== 'held') return outcome
    const done = await this.#doneOf(name)
    if (done !== undefined) await this.#forget(outcome.record)
    return done ?? outcome
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

  #aheadOf(record: HoldRecord): Promise<readonly AheadParty[]> {
    if (record.pool === undefined) return this.#parties(record.claims, record.note.ref)
    return poolHolders(this.#leasehold, record.pool)
  }

  #parties(claims: readonly LockKey[], ref: string): Promise<readonly AheadParty[]> {
    const own = new Map(this.#open().map(({ note, handle }) => [note.ref, handle]))
    return partiesAhead(this.#store, claims, ref, own)
  }

  async #askNotices(open: readonly HoldRecord[]): Promise<AgentNotice[]> {
    const asks = await asksFor(this.#store, new Set(open.map(({ note }) => note.ref)))
    return asks.flatMap((ask) => {
      const record = open.find(({ note }) => note.ref === ask.ref)
      if (record === undefined) return []
      const { handle: hold, note } = record
      return [
        { about: 'asked-back' as const, hold, agent: note.agent, text: askText(ask, note.for) },
      ]
    })
  }

  #ceilingText(open: readonly HoldRecord[]): string | undefined {
    const held = open.filter(({ state }) => state === 'held')
    if (held.length === 0) return undefined
    const first = held.reduce((a, b) => (a.latest <= b.latest ? a : b))
    const idle = isoTime(this.#lastCall + this.ceilings.idle)
    return `Your holds are released if no leasehold tool is called before ${idle} (${formatDuration(this.ceilings.idle)} idle). ${first.handle} ends at ${isoTime(first.latest)} at the latest. Release what you no longer need`
  }

  #open(): HoldRecord[] {
    return [...this.#records.values()].filter((it) => it.isOpen)
  }

  /** Forgets the oldest ended holds. */
  #trim(): void {
    const ended = [...this.#records.values()].filter((it) => !it.isOpen)
    for (const { handle } of ended.slice(0, Math.max(0, ended.length - ENDED_KEPT))) {
      this.#records.delete(handle)
    }
  }

  #deadlineOf(record: HoldRecord): number {
    const { turn, idle } = this.ceilings
    const idleAt = this.#lastCall + idle
    if (record.state !== 'held') return idleAt
    const turnAt = record.isReported ? Infinity : record.heldAt! + turn
    return Math.min(idleAt, turnAt, record.latest)
  }

  #changed(): void {
    this.#schedule()
    for (const listener of this.#listeners) listener()
  }

  /** Sets the timer for the next ceiling. */
  #schedule(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    const open = this.#open()
    if (open.length === 0 || this.#isClosed) return
    const next = Math.min(...open.map((record) => this.#deadlineOf(record)))
    this.#timer = this.#clock.timer(next, () => this.#enforce())
  }

  #enforce(): void {
    const now = this.#clock.now()
    for (const record of this.#open()) {
      if (this.#deadlineOf(record) > now) continue
      const why = this.#ceilingReached(record, now)
      void record.release(now).catch(() => {})
      record.lose(why, now)
    }
    this.#changed()
  }

  #ceilingReached(record: HoldRecord, now: number): string {
    const { idle, turn, maxHold } = this.ceilings
    if (record.latest <= now) return maximumText(maxHold)
    if (this.#lastCall + idle <= now) {
      return `no leasehold tool was called for ${formatDuration(idle)}, the idle limit, so it was released`
    }
    return `its turn came, and nobody called wait within ${formatDuration(turn)}, so it was released`
  }
}

function claimOn(key: string): LockKey {
  return { key, mode: 'exclusive' }
}
