import { AdaptiveTtl, type HoldEnd, type TtlChoice } from '../adaptive/index.ts'
import type { Client, Hold } from '../client/index.ts'
import {
  type Duration,
  invalid,
  isLeaseholdError,
  type Key,
  LeaseholdError,
  show,
  type Timer,
  type Token,
} from '../port/index.ts'
import { encodedPart, stringOf } from './arguments.ts'
import { readKept, writeKept } from './values/kept-value.ts'

/** Options that accept `ttl: 'adaptive'` with a `kind`: the ttl is learnt from earlier holds. */
export type Learning<Options> = Omit<Options, 'ttl' | 'kind'> & {
  readonly ttl?: Duration | 'adaptive' | undefined
  /** The kind of work. How long it is held is learnt for each kind separately. */
  readonly kind?: string | undefined
}

/** What was learnt about a kind expires if nothing of that kind is held for this long. */
const KEPT_MS = 90 * 86_400_000
/** Observations are written at most this often. */
const WRITE_MS = 10_000
const KINDS_MAX = 256
const KIND_LENGTH_MAX = 100

interface Tracked {
  readonly memory: KindMemory
  readonly since: number
  readonly ttl: number
}

/**
 * Chooses the ttl of a lease from how long each kind of work was held before.
 *
 * **Promised.** The store keeps what was learnt, as one value per kind under `adaptive/`. It
 * survives restarts, and all processes share it. It is written at most every ten seconds, and every
 * choice can be explained. A chosen ttl is always within the store's limits.
 *
 * **Not promised.** Not every hold is counted. If two processes write at the same moment, one may
 * undo the other's last entries. A process that dies loses what it has not written. A holder that
 * died cannot report, so the share of holders that die is assumed, not learnt.
 */
export class Adaptive {
  readonly #client: Client
  readonly #kinds = new Map<string, KindMemory>()
  readonly #held = new Map<string, Tracked>()
  #isListening = false

  constructor(client: Client) {
    this.#client = client
  }

  /** Returns the ttl that would be chosen now for this kind of work, and why. */
  async explain(kind: string): Promise<TtlChoice> {
    return (await this.#memory(kind)).choose()
  }

  /** Returns the options with a chosen ttl, and a function to call with the hold that was taken. */
  async timed<
    Options extends {
      readonly ttl?: Duration | undefined
      readonly timeout?: Duration | undefined
    },
  >(
    options: Learning<Options>,
  ): Promise<{ readonly options: Options; readonly track: (hold: Tracking) => void }> {
    const { kind, ...rest } = options
    if (kind === undefined) {
      throw invalid(
        `ttl is 'adaptive', but kind is missing. Name the kind of work, as in { ttl: 'adaptive', kind: 'report' }`,
      )
    }
    const memory = await this.#memory(kind, options.timeout)
    const { ttl } = memory.choose()
    const timed = { ...rest, ttl } as unknown as Options
    return { options: timed, track: (hold) => this.#track(hold, memory, ttl) }
  }

  /** Whether there are observations that are not written yet. */
  get unwritten(): boolean {
    return [...this.#kinds.values()].some((memory) => memory.unwritten)
  }

  /** Writes the pending observations. Never rejects. */
  async flush(): Promise<void> {
    await Promise.all([...this.#kinds.values()].map((memory) => memory.write()))
  }

  async #memory(kind: string, timeout?: Duration): Promise<KindMemory> {
    stringOf('kind', kind, KIND_LENGTH_MAX)
    let memory = this.#kinds.get(kind)
    if (memory === undefined) {
      if (this.#kinds.size >= KINDS_MAX) {
        throw new LeaseholdError(
          'limit-exceeded',
          `kind ${show(kind)} is one too many: one client learns at most ${KINDS_MAX} kinds of work. Use fewer, more general kinds`,
        )
      }
      memory = new KindMemory(this.#client, kind)
      this.#kinds.set(kind, memory)
    }
    // The read is shared by all callers, and each has a time limit of its own.
    await this.#client.limitedTo(timeout).answered(`the read of ${show(kind)}`, memory.ready())
    return memory
  }

  #track({ key, claimToken }: Tracking, memory: KindMemory, ttl: number): void {
    this.#listen()
    this.#held.set(nameOf(key, claimToken), { memory, since: this.#client.now(), ttl })
  }

  /** One listener serves all holds. */
  #listen(): void {
    if (this.#isListening) return
    this.#isListening = true
    this.#client.on('released', ({ keys, token }) => this.#ended(keys[0]!, token, 'released'))
    this.#client.on('closed', ({ claims }) => {
      for (const { key, token } of claims) this.#ended(key, token, 'released')
    })
    this.#client.on('lost', ({ claims, error }) => {
      // The holder is still alive, so it outlived an expired lease. After a forced end it lived
      // too.
      const isOver = error.reason === 'expired' || error.reason === 'unreachable'
      for (const { key, token } of claims) this.#ended(key, token, isOver ? 'outlived' : 'released')
    })
  }

  #ended(key: Key, token: Token, ended: HoldEnd): void {
    const name = nameOf(key, token)
    const tracked = this.#held.get(name)
    if (tracked === undefined) return
    this.#held.delete(name)
    const { memory, since, ttl } = tracked
    memory.observe(this.#client.now() - since, ended, ttl)
  }
}

/** A hold, or anything with its key and token. */
export type Tracking = Pick<Hold, 'key' | 'claimToken'>

function nameOf(key: Key, token: Token): string {
  return `${token} ${key}`
}

/** What is known about one kind: read from the store, plus what this process has observed since. */
class KindMemory {
  readonly #client: Client
  readonly #kind: string
  readonly #key: Key
  /** Everything that is known, and the part of it that is not written yet. */
  #known: AdaptiveTtl
  #pending: AdaptiveTtl | undefined = undefined
  #timer: Timer | undefined = undefined
  #loading: Promise<void> | undefined = undefined
  #writing: Promise<void> = Promise.resolve()

  constructor(client: Client, kind: string) {
    this.#client = client
    this.#kind = kind
    this.#key = `adaptive/${encodedPart('kind', kind)}`
    this.#known = this.#learner()
  }

  /** Resolves when the stored value was read. If that fails, learning starts from nothing. */
  ready(): Promise<void> {
    this.#loading ??= this.#load()
    return this.#loading
  }

  get unwritten(): boolean {
    return this.#pending !== undefined
  }

  choose(): TtlChoice {
    return this.#known.choose()
  }

  observe(held: number, ended: HoldEnd, ttl: number): void {
    this.#pending ??= this.#learner()
    for (const learner of [this.#known, this.#pending]) learner.observe({ held, ended, ttl })
    const { clock } = this.#client
    this.#timer ??= clock.timer(clock.now() + WRITE_MS, () => void this.write())
  }

  /** Writes run one after the other and never reject. */
  write(): Promise<void> {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#writing = this.#writing.then(() => this.#write())
    return this.#writing
  }

  #learner(json?: string): AdaptiveTtl {
    const store = this.#client.guarantees.ttl
    return AdaptiveTtl.fromText(json, { kind: this.#kind, store })
  }

  async #load(): Promise<void> {
    try {
      this.#known = this.#learner((await readKept(this.#client, this.#key))?.value)
      const { damage } = this.#known
      if (damage !== undefined) this.#warn(`starts from nothing: ${damage}`)
    } catch (error) {
      if (isLeaseholdError(error, 'closed')) throw error
      this.#warn(`could not be read: ${error}`)
    }
  }

  async #write(): Promise<void> {
    const pending = this.#pending
    if (pending === undefined) return
    this.#pending = undefined
    try {
      const before = await readKept(this.#client, this.#key)
      const all = this.#learner(before?.value)
      all.merge(pending)
      const ttl = Math.min(KEPT_MS, this.#client.guarantees.ttl.max)
      await writeKept(this.#client, this.#key, all.toText(), ttl, before)
      // From now on this includes the entries of others, and what was observed during the write.
      if (this.#pending !== undefined) all.merge(this.#pending)
      this.#known = all
    } catch (error) {
      // The next write includes it.
      if (this.#pending === undefined) this.#pending = pending
      else (this.#pending as AdaptiveTtl).merge(pending)
      if (!isLeaseholdError(error, 'closed')) this.#warn(`could not be written: ${error}`)
    }
  }

  #warn(what: string): void {
    const detail = `what was learnt about ${show(this.#kind)} ${what}`
    const key = this.#key
    this.#client.emit({ recipe: 'adaptive', event: 'failed', key, detail, level: 'warn' })
  }
}
