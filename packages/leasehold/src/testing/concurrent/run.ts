import type { Granted, LeaseStore, Notice, Revision, Watch } from '../../port/index.ts'
import { Names } from '../commands/calls.ts'
import { type Command, KEYS } from '../commands/command.ts'
import { withOwnDeadline, withoutTime } from '../commands/compare-with-kernel.ts'
import { type Asked, type Entry, History, isOver } from './history.ts'
import type { Rules } from './judge.ts'
import type { Act, Tick } from './schedule.ts'

/** What a run needs of its stores, and of their environment. */
export interface Driver<Fault = never> {
  /** One or more stores that are open on the same data. They may be replaced after a fault. */
  readonly stores: readonly LeaseStore[]
  readonly rules: Rules
  /** The prefix of all keys. */
  readonly prefix: string
  /** The time on the stores' clock. */
  now(): number
  /**
   * Lets time pass on the stores' clock; without it, nothing ends by time. Unless `passesInCalls` is
   * true, time passes only while no call is in flight, because otherwise it would be unknown whether
   * the call was carried out before or after that moment.
   */
  pass?(ms: number): Promise<void>
  readonly passesInCalls?: boolean | undefined
  /** Nothing ends by time, although time passes. */
  readonly withoutExpiry?: boolean | undefined
  /** No two leases end at the same moment: each store may choose which of the two is first. */
  readonly ownDeadlines?: boolean | undefined
  /** Whether calls through this store may now be carried out in another order. */
  isBroken?(store: number): boolean
  /** Fulfilled when `done` returns true; fails if that takes too long. */
  until(done: () => boolean): Promise<void>
  fault?(fault: Fault, history: History): Promise<void>
  /** Ends all faults. */
  calm?(history: History): Promise<void>
  close(): Promise<void>
}

/** Without a clock that can be moved, everything lives longer than a run takes. */
const LONG_MS = 3_600_000
/** After this long, nothing is late any more: the longest lease of a schedule is much shorter. */
const LATE_MS = 1000

/** The maximum of calls in flight: an order must be found for them. */
const PENDING_MAX = 6

/** The number of leases that are granted at the end. */
const LAST_GRANTS = 3

/** One run of a schedule. */
export class Run<Fault> {
  readonly history = new History()
  readonly #driver: Driver<Fault>
  readonly #names: Names
  readonly #revisions: Revision[] = []
  readonly #watches: { readonly entry: Entry; readonly watch: Watch }[] = []

  constructor(driver: Driver<Fault>) {
    this.#driver = driver
    this.#names = new Names(driver.prefix)
  }

  async tick({ fault, acts, settle, pass }: Tick<Fault>): Promise<void> {
    if (fault !== undefined) await this.#driver.fault?.(fault, this.history)
    for (const act of acts) this.#act(act)
    const { passesInCalls } = this.#driver
    if (settle || (pass > 0 && !passesInCalls)) await this.#settle()
    else if (!passesInCalls)
      await this.#driver.until(() => this.history.pending.length <= PENDING_MAX)
    if (this.history.pending.length > 0 && !passesInCalls) return
    await this.#driver.pass?.(pass)
    if (this.#driver.pass && !passesInCalls) this.history.quiet()
  }

  /** Ends all faults, reads everything that can be read, and ends all leases. */
  async finish(): Promise<void> {
    await this.#driver.calm?.(this.history)
    await this.#readAll()
    if (this.#driver.pass) {
      await this.#driver.pass(LATE_MS)
      this.history.isOnTime = true
      await this.#readAll()
    }
    await this.#endAll()
    await this.#lastEvents()
  }

  async #settle(): Promise<void> {
    await this.#driver.until(() => this.history.pending.length === 0)
  }

  #act(act: Act): void {
    switch (act.do) {
      case 'call':
        this.#command(act.store, act.command)
        break
      case 'watch': {
        const from = act.from === undefined ? undefined : this.#revisions.at(-1 - act.from)
        this.#watch(act.store, { prefix: this.#driver.prefix + act.prefix, from })
        break
      }
      case 'watch lease': {
        const lease = this.#names.leases.at(-1 - (act.lease % (this.#names.leases.length || 1)))
        if (lease !== undefined) this.#watch(act.store, { lease })
        break
      }
      case 'unwatch': {
        const open = this.#watches.filter(({ entry }) => !entry.closed)
        const one = open.at(-1 - (act.watch % (open.length || 1)))
        if (one) this.#unwatch(one)
      }
    }
  }

  #command(store: number, command: Command): void {
    const { pass, ownDeadlines, withoutExpiry } = this.#driver
    const timed = pass && !withoutExpiry ? command : withoutTime(command)
    const number = this.history.entries.length
    const call = this.#names.call(ownDeadlines ? withOwnDeadline(timed, number) : timed)
    if (call.method !== 'pass') this.#call(store, call)
  }

  #call(store: number, asked: Exclude<Asked, { method: 'watch' | 'restart' }>): Entry {
    const entry = this.#begin(store, asked)
    const target = this.#driver.stores[store]!
    const call = target[asked.method] as (argument: unknown) => Promise<object>
    call.call(target, asked.argument).then(
      (answer) => {
        // Nothing is learnt from a process that is gone.
        if (entry.outcome !== undefined) return
        this.history.end(entry, { is: 'answered', answer })
        this.#names.learn(asked, answer)
        if ('revision' in answer) this.#revisions.push(answer.revision as Revision)
      },
      (error: unknown) => this.history.fail(entry, error, this.#driver.now()),
    )
    return entry
  }

  #begin(store: number, asked: Asked): Entry {
    const entry = this.history.begin(store, asked, this.#driver.now())
    const isBroken = this.#driver.isBroken?.(store) ?? false
    entry.isFree = isBroken
    entry.mayBeInterrupted = isBroken
    return entry
  }

  #watch(store: number, target: Extract<Asked, { method: 'watch' }>['argument']): void {
    const entry = this.#begin(store, { method: 'watch', argument: target })
    const receive = (notice: Notice) => this.history.receive(entry, notice)
    const watch = this.#driver.stores[store]!.watch(target, receive)
    this.#watches.push({ entry, watch })
  }

  #unwatch({ entry, watch }: { readonly entry: Entry; readonly watch: Watch }): void {
    entry.closed = true
    if (entry.outcome === undefined) this.history.end(entry, { is: 'unknown', why: 'closed' })
    watch.close()
  }

  /** Through every store: everything that can be read of all keys and leases, at one moment. */
  async #readAll(): Promise<void> {
    const { prefix, stores } = this.#driver
    await this.#settle()
    for (const store of stores.keys()) {
      const keys = KEYS.map((key) => prefix + key)
      const queries = [
        { prefix },
        { leases: true } as const,
        ...keys.flatMap((key) => [{ key }, { history: key }]),
        ...this.#names.leases.map((lease) => ({ lease })),
      ]
      for (const argument of queries) this.#call(store, { method: 'read', argument })
      await this.#settle()
    }
  }

  /** Ends the leases one after the other, so that waiting claims hold. */
  async #endAll(): Promise<void> {
    const all = this.#call(0, { method: 'read', argument: { leases: true } })
    await this.#settle()
    const { leases } = (all.outcome as { answer: { leases: readonly { id: string }[] } }).answer
    for (const [at, { id }] of leases.entries()) {
      const argument = { target: { lease: id }, by: 'the end' }
      this.#call(at % this.#driver.stores.length, { method: 'revoke', argument })
      if (at % 2 === 0) await this.#settle()
    }
    await this.#settle()
  }

  /**
   * Events on every prefix, so that every open watch has something left to report. The last of them
   * happen while the first are being reported.
   */
  async #lastEvents(): Promise<void> {
    const { prefix, stores, pass, passesInCalls } = this.#driver
    const claims = KEYS.map((key) => ({ key: prefix + key }))
    const argument = { holder: 'last', ttl: LONG_MS, claims }
    const last: Entry[] = []
    for (let count = 0; count < LAST_GRANTS; count++) {
      last.push(this.#call(0, { method: 'grant', argument }))
      if (passesInCalls) await pass?.call(this.#driver, 0)
    }
    await this.#settle()
    const granted = last.map(({ outcome }) => (outcome as { answer: Granted }).answer)
    const revision = Math.max(...granted.map((each) => each.revision))
    const isReported = ({ received }: Entry) =>
      isOver(received) ||
      received.some((notice) => notice.type === 'events' && notice.revision >= revision)
    await this.#driver.until(() => this.history.openWatches.every(isReported))
    for (const { watch } of this.#watches) watch.close()
    // This is not part of the history any more: it cleans up a store that others use.
    for (const { lease } of granted) {
      let isGone = false
      const gone = stores[0]!.revoke({ target: { lease } }).finally(() => {
        isGone = true
      })
      await this.#driver.until(() => isGone)
      await gone
    }
  }
}
