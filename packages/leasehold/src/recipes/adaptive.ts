import { AdaptiveTtl, type HoldEnd, type TtlChoice } from '../adaptive/index.ts'
import type { Client, Hold } from '../client/index.ts'
import {
  type Duration,
  invalid,
  isLeaseholdError,
  type Key,
  LeaseholdError,
  type LeaseId,
  show,
  type Timer,
  type Token,
} from '../port/index.ts'
import { encodedPart, stringOf } from './arguments.ts'

/** Options whose ttl may be left to what was learnt: `ttl: 'adaptive'`, with a `kind`. */
export type Learning<Options> = Omit<Options, 'ttl' | 'kind'> & {
  readonly ttl?: Duration | 'adaptive' | undefined
  /** What kind of work it is for: for each, it is learnt how long it is held. */
  readonly kind?: string | undefined
}

/** What was learnt of a kind is forgotten when nothing of it was held for so long. */
const KEPT_MS = 90 * 86_400_000
/** What was seen is written at most so often. */
const WRITE_MS = 10_000
const KINDS_MAX = 256
const KIND_LENGTH_MAX = 100

interface Tracked {
  readonly memory: KindMemory
  readonly since: number
  readonly ttl: number
}

/**
 * The ttl of a lease, learnt from how long each kind of work was really held.
 *
 * **Promised.** What was learnt is kept in the store, one text for each kind under `adaptive/`, so it
 * survives restarts and is shared by all processes. It is written at most every ten seconds, and
 * every choice can be explained. A ttl lies within the store's bounds whatever was learnt.
 *
 * **Not promised.** That every hold is counted: of two processes that write in the same instant one
 * may undo the other's last entries, and a process that dies takes with it what it had not written.
 * A holder that died cannot tell, so the share of holders that die is assumed and not learnt.
 */
export class Adaptive {
  readonly #client: Client
  readonly #kinds = new Map<string, KindMemory>()
  readonly #held = new Map<string, Tracked>()
  #isListening = false

  constructor(client: Client) {
    this.#client = client
  }

  /** The ttl that would be chosen now for this kind of work, and why. */
  async explain(kind: string): Promise<TtlChoice> {
    return (await this.#memory(kind)).choose()
  }

  /** The options with a ttl of their own, and what to call with what was taken by them. */
  async timed<Options extends { readonly ttl?: Duration | undefined }>(
    options: Learning<Options>,
  ): Promise<{ readonly options: Options; readonly track: (hold: Tracking) => void }> {
    const { kind, ...rest } = options
    if (kind === undefined) {
      throw invalid(
        `ttl is 'adaptive' without a kind: say what kind of work it is for, as in { ttl: 'adaptive', kind: 'report' }`,
      )
    }
    const memory = await this.#memory(kind)
    const { ttl } = memory.choose()
    const timed = { ...rest, ttl } as unknown as Options
    return { options: timed, track: (hold) => this.#track(hold, memory, ttl) }
  }

  /** Whether something was seen that is not written yet. */
  get unwritten(): boolean {
    return [...this.#kinds.values()].some((memory) => memory.unwritten)
  }

  /** Writes what was seen and not written yet. Never rejected. */
  async flush(): Promise<void> {
    await Promise.all([...this.#kinds.values()].map((memory) => memory.write()))
  }

  async #memory(kind: string): Promise<KindMemory> {
    stringOf('kind', kind, KIND_LENGTH_MAX)
    let memory = this.#kinds.get(kind)
    if (memory === undefined) {
      if (this.#kinds.size >= KINDS_MAX) {
        throw new LeaseholdError(
          'limit-exceeded',
          `kind ${show(kind)} is one too many: at most ${KINDS_MAX} kinds of work are learnt by one client, so name few and general ones`,
        )
      }
      memory = new KindMemory(this.#client, kind)
      this.#kinds.set(kind, memory)
    }
    await memory.ready()
    return memory
  }

  #track({ key, claimToken }: Tracking, memory: KindMemory, ttl: number): void {
    this.#listen()
    this.#held.set(nameOf(key, claimToken), { memory, since: this.#client.now(), ttl })
  }

  /** One pair of ears for all that is held. */
  #listen(): void {
    if (this.#isListening) return
    this.#isListening = true
    this.#client.on('released', ({ keys, token }) => this.#ended(keys[0]!, token, 'released'))
    this.#client.on('lost', ({ claims, error }) => {
      // Who can still say that its lease ran out has outlived it. Taken by force, it lived too.
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

/** What can be learnt from: a hold, or something that has its key and token. */
export type Tracking = Pick<Hold, 'key' | 'claimToken'>

function nameOf(key: Key, token: Token): string {
  return `${token} ${key}`
}

/** What is known of one kind: from the store, and what this process has seen since. */
class KindMemory {
  readonly #client: Client
  readonly #kind: string
  readonly #key: Key
  /** All that is known, and what of it is not written yet. */
  #known: AdaptiveTtl
  #news: AdaptiveTtl | undefined = undefined
  #timer: Timer | undefined = undefined
  #loading: Promise<void> | undefined = undefined
  #writing: Promise<void> = Promise.resolve()

  constructor(client: Client, kind: string) {
    this.#client = client
    this.#kind = kind
    this.#key = `adaptive/${encodedPart('kind', kind)}`
    this.#known = this.#learner()
  }

  /** Fulfilled when what the store knows was read, or could not be: then it begins with nothing. */
  ready(): Promise<void> {
    this.#loading ??= this.#load()
    return this.#loading
  }

  get unwritten(): boolean {
    return this.#news !== undefined
  }

  choose(): TtlChoice {
    return this.#known.choose()
  }

  observe(held: number, ended: HoldEnd, ttl: number): void {
    this.#news ??= this.#learner()
    for (const learner of [this.#known, this.#news]) learner.observe({ held, ended, ttl })
    const { clock } = this.#client
    this.#timer ??= clock.timer(clock.now() + WRITE_MS, () => void this.write())
  }

  /** One after the other; never rejected. */
  write(): Promise<void> {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#writing = this.#writing.then(() => this.#write())
    return this.#writing
  }

  #learner(text?: string): AdaptiveTtl {
    const store = this.#client.guarantees.ttl
    return AdaptiveTtl.fromText(text, { kind: this.#kind, store })
  }

  async #load(): Promise<void> {
    try {
      this.#known = this.#learner((await this.#read())?.value)
      const { damage } = this.#known
      if (damage !== undefined) this.#warn(`begins anew: ${damage}`)
    } catch (error) {
      if (isLeaseholdError(error, 'closed')) throw error
      this.#warn(`could not be read: ${error}`)
    }
  }

  async #read() {
    const { claims } = await this.#client.store.read({ key: this.#key, limit: 1 })
    return claims[0]
  }

  async #write(): Promise<void> {
    const news = this.#news
    if (news === undefined) return
    this.#news = undefined
    try {
      const claim = await this.#read()
      const all = this.#learner(claim?.value)
      all.merge(news)
      await this.#put(all.toText(), claim)
      // Others' entries are known from now on too; and what was seen while this was written.
      if (this.#news !== undefined) all.merge(this.#news)
      this.#known = all
    } catch (error) {
      // It is written with what is seen next.
      if (this.#news === undefined) this.#news = news
      else (this.#news as AdaptiveTtl).merge(news)
      if (!isLeaseholdError(error, 'closed')) this.#warn(`could not be written: ${error}`)
    }
  }

  async #put(value: string, claim: { lease: LeaseId; token: Token } | undefined): Promise<void> {
    const { store, holder } = this.#client
    if (claim !== undefined) {
      const { lease, token } = claim
      await store.update({ lease, key: this.#key, token, value })
      await store.renew([lease])
      return
    }
    const claims = [{ key: this.#key, value }]
    const ttl = Math.min(KEPT_MS, store.guarantees.ttl.max)
    const granted = await store.grant({ holder, ttl, claims, ifFree: true })
    if (granted.outcome === 'busy') await this.#put(value, granted.ahead[0]!.first)
  }

  #warn(what: string): void {
    const detail = `what was learnt of ${show(this.#kind)} ${what}`
    this.#client.emit({
      recipe: 'adaptive',
      event: 'failed',
      key: this.#key,
      detail,
      level: 'warn',
    })
  }
}
