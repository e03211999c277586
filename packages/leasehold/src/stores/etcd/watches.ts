import type {
  Key,
  LeaseholdError,
  LeaseId,
  Notice,
  Observer,
  Token,
  Watch,
  WatchTarget,
} from '../../port/index.ts'
import type { Context, News, Place } from './context.ts'
import type { KnownLease } from './known.ts'
import { LeaseWatch } from './lease-watch.ts'
import type { Lives } from './lives.ts'
import { watchPrefix } from './prefix-watch.ts'
import type { WatchStream } from './watch-stream.ts'

/** The open watches of a store; the calls of this process tell them what etcd need not be asked. */
export class Watches implements News {
  readonly #stream: WatchStream
  readonly #lives: Lives
  readonly #leases = new Map<LeaseId, Set<LeaseWatch>>()
  /** How each open watch is ended from here. */
  readonly #open = new Set<(error: LeaseholdError) => void>()
  #context: Context | undefined

  constructor(stream: WatchStream, lives: Lives) {
    this.#stream = stream
    this.#lives = lives
  }

  /** The calls need the watches and the watches the calls: this is tied here. */
  use(context: Context): void {
    this.#context = context
  }

  open(target: WatchTarget, observer: Observer): Watch {
    let isOpen = true
    let stop = () => {}
    const tell = (notice: Notice) => {
      if (!isOpen) return
      const { type } = notice
      if (type === 'compacted' || type === 'gone' || type === 'interrupted') end()
      safely(observer, notice)
    }
    const interrupt = (error: LeaseholdError) => tell({ type: 'interrupted', error })
    const end = () => {
      isOpen = false
      this.#open.delete(interrupt)
      stop()
    }
    this.#open.add(interrupt)
    stop = 'lease' in target ? this.#watchLease(target.lease, tell) : this.#watchKeys(target, tell)
    return { close: () => isOpen && end() }
  }

  close(error: LeaseholdError): void {
    for (const interrupt of [...this.#open]) interrupt(error)
  }

  waits(lease: LeaseId, token: Token, revision: number, places: readonly Place[]): boolean {
    const watches = this.#leases.get(lease)
    for (const watch of watches ?? []) watch.waits(token, revision, places)
    return watches !== undefined
  }

  watches(lease: LeaseId): boolean {
    const [watch] = this.#leases.get(lease) ?? []
    return watch?.isCurrent ?? false
  }

  released(lease: LeaseId, token: Token, keys: readonly Key[]): void {
    for (const watch of this.#leases.get(lease) ?? []) watch.released(token, keys)
  }

  limited(known: KnownLease, at: number): void {
    this.#lives.limit(this.#context!, known, at)
  }

  #watchKeys(target: Extract<WatchTarget, { prefix: string }>, tell: Observer): () => void {
    return watchPrefix(this.#context!, this.#stream, target, tell)
  }

  #watchLease(lease: LeaseId, tell: Observer): () => void {
    const watch = new LeaseWatch(this.#context!, this.#stream, this.#lives, lease, tell)
    const watches = this.#leases.get(lease) ?? new Set()
    this.#leases.set(lease, watches.add(watch))
    return () => {
      watch.close()
      watches.delete(watch)
      if (watches.size === 0) this.#leases.delete(lease)
    }
  }
}

/** The others who watch must hear all the same; but the fault should not vanish either. */
function safely(observer: Observer, notice: Notice): void {
  try {
    observer(notice)
  } catch (error) {
    process.emitWarning(error instanceof Error ? error : new Error(String(error)))
  }
}
