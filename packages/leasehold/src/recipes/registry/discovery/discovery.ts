import { type Client, Emitter } from '../../../client/index.ts'
import {
  type EndReason,
  type Event,
  type Key,
  knownNames,
  type Timer,
} from '../../../port/index.ts'
import { oneOf, optionsOf } from '../../arguments.ts'
import { onAbort } from '../../sleep.ts'
import { Brake, type BrakeOptions, brakeLimits } from '../brake.ts'
import {
  byId,
  type Filter,
  type Instance,
  instanceOf,
  isHealthy,
  partsOfKey,
  servicesKey,
  wantedBy,
} from '../instance/instance.ts'
import {
  choose,
  PICK_OPTIONS,
  PICK_STRATEGIES,
  type PickOptions,
  type PickStrategy,
} from './pick.ts'
import { ownSource, type Source, type SourceChanged } from './source.ts'

/**
 * Why an instance is no longer shown: how its lease ended (`unseen` if that happened during an
 * outage), or `unwanted`: it exists but does not match the filter any more.
 */
export type LeftReason = EndReason | 'unseen' | 'unwanted'

export type Change =
  | { readonly type: 'joined'; readonly instance: Instance }
  | { readonly type: 'changed'; readonly instance: Instance; readonly before: Instance }
  | { readonly type: 'left'; readonly instance: Instance; readonly reason: LeftReason }

export type WatchEvents = {
  [Type in Change['type']]: Extract<Change, { readonly type: Type }>
}

export interface WatchOptions extends Filter {
  /** The default strategy of `pick`. Default: `round-robin`. */
  readonly strategy?: PickStrategy | undefined
  /** See `PickOptions`; applies to all picks. */
  readonly orUnhealthy?: boolean | undefined
  /** The brake on mass eviction; `false` for none. */
  readonly brake?: BrakeOptions | false | undefined
}

const WATCH_OPTIONS = knownNames<WatchOptions>({
  capability: true,
  tags: true,
  zone: true,
  status: true,
  strategy: true,
  orUnhealthy: true,
  brake: true,
})

/** An instance whose lease has ended but that is still shown. */
interface Lapsed {
  readonly until: number
  readonly reason: LeftReason
}

/**
 * The instances of a service, kept up to date by events: reading costs no call.
 *
 * **Promised.** For each instance, it shows states that were true, in order. During an outage of
 * the store it keeps showing what it knew; `live` and `age` say how current that is. `pick` never
 * returns an unhealthy instance, unless none is healthy and that was allowed.
 *
 * **Not promised.** It is behind the store by the delay of events, and the store notices a dead
 * process only after up to its ttl. Callers must expect that an instance is gone.
 */
export class Discovery implements AsyncIterable<Change>, Disposable {
  readonly service: string
  readonly #client: Client
  readonly #ready: Promise<void>
  #stopListening = () => {}
  readonly #options: WatchOptions
  readonly #wanted: ReturnType<typeof wantedBy>
  readonly #source: Source
  readonly #brake: Brake
  readonly #known = new Map<string, Instance>()
  readonly #lapsed = new Map<string, Lapsed>()
  readonly #shown = new Map<string, Instance>()
  readonly #events = new Emitter<WatchEvents>({ joined: true, changed: true, left: true })
  readonly #cursors = new Set<ChangeCursor>()
  /** Both are computed on demand and kept until something changes. */
  #instances: readonly Instance[] | undefined = undefined
  #all: readonly Instance[] | undefined = undefined
  #timer: Timer | undefined = undefined
  #turn = 0
  #isReady = false
  #closed = false

  /** `sourceFor` gives it a source; by default it has its own. */
  constructor(
    client: Client,
    service: string,
    options: WatchOptions = {},
    sourceFor: (changed: SourceChanged) => Source = (changed) =>
      ownSource(client, service, changed),
  ) {
    this.service = service
    this.#client = client
    this.#options = optionsOf('registry.watch', options, WATCH_OPTIONS)
    this.#wanted = wantedBy(options)
    this.#brake = new Brake(brakeLimits(options.brake))
    if (options.strategy !== undefined) oneOf('strategy', options.strategy, PICK_STRATEGIES)
    this.#source = sourceFor((keys, ended) => this.#refresh(keys, ended))
    this.#ready = this.#source.ready.then(() => {
      this.#isReady = true
      this.#refresh(new Set(this.#source.keys()), [])
    })
    // Callers that do not await it need not catch it.
    this.#ready.catch(() => {})
    this.#stopListening = onAbort([client.closing], () => this.close())
  }

  /** Resolves when all instances are known; rejects if it is closed before. */
  get ready(): Promise<void> {
    return this.#client.awaited(this.#ready)
  }

  /** The instances that match the filter, sorted by id. */
  get instances(): readonly Instance[] {
    this.#instances ??= [...this.#shown.values()].sort(byId)
    return this.#instances
  }

  /** All instances of the right kind, whatever their status, sorted by id. */
  get all(): readonly Instance[] {
    this.#all ??= [...this.#known.values()].filter(this.#wanted.kind).sort(byId)
    return this.#all
  }

  /** Whether events of the store arrive. */
  get live(): boolean {
    return this.#source.live
  }

  /** Milliseconds since the store was last heard from: how stale this may be. */
  age(): number {
    return this.#source.age()
  }

  /** Whether the brake delays removals now. */
  get braking(): boolean {
    return this.#lapsed.size > 0
  }

  /** Chooses a healthy instance of the right kind; `undefined` if there is none. */
  pick(
    strategy: PickStrategy = this.#options.strategy ?? 'round-robin',
    options: PickOptions = {},
  ): Instance | undefined {
    optionsOf('pick', options, PICK_OPTIONS)
    const { all } = this
    let candidates = all.filter(isHealthy)
    if (candidates.length === 0 && (options.orUnhealthy ?? this.#options.orUnhealthy)) {
      candidates = all.filter(({ status }) => status === 'lapsed')
      if (candidates.length === 0) candidates = all.filter(({ status }) => status === 'critical')
    }
    return choose(candidates, strategy, options, this.#turn++, () => this.#client.random.next())
  }

  on<Type extends Change['type']>(
    type: Type,
    listener: (change: WatchEvents[Type]) => void,
  ): () => void {
    return this.#events.on(type, listener)
  }

  /**
   * Yields the current instances as joined, then every change. A slow consumer gets no outdated
   * steps: each change goes from what it got last to the current state.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<Change, void, undefined> {
    const cursor = new ChangeCursor()
    this.#cursors.add(cursor)
    try {
      while (!this.#closed) {
        const change = cursor.next(this.#shown)
        if (change === undefined) await this.#client.awaited(cursor.changed())
        else yield change
      }
    } finally {
      this.#cursors.delete(cursor)
    }
  }

  close(): void {
    this.#closed = true
    this.#stopListening()
    this.#source.close()
    this.#timer?.cancel()
    this.#wake()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #refresh(keys: ReadonlySet<Key>, ended: readonly Event[]): void {
    if (!this.#isReady || this.#closed) return
    for (const key of keys) {
      const id = partsOfKey(key)?.id
      if (id !== undefined) this.#refreshKey(id, ended)
    }
    this.#wake()
  }

  #refreshKey(id: string, ended: readonly Event[]): void {
    const entry = this.#source.entry(id)
    const health = this.#source.health(id)
    const before = this.#known.get(id)
    const lapsed = this.#lapsed.get(id)
    if (entry !== undefined) {
      this.#lapsed.delete(id)
      this.#brake.forgive(id)
      const instance = instanceOf(entry, health)
      if (instance !== undefined) this.#show(instance)
      else if (before !== undefined) this.#drop(before, 'unwanted')
    } else if (before !== undefined && lapsed !== undefined) {
      // Its lease has ended and its check fails: it is dead.
      const isDead = health?.of === before.token && health.status === 'critical'
      if (isDead) this.#drop(before, lapsed.reason)
    } else if (before !== undefined) {
      const end = ended.find(({ token }) => token === before.token)?.end
      this.#lose(before, end?.reason ?? 'unseen')
    }
  }

  /** Its lease has ended. Removal is delayed only if it expired and was healthy. */
  #lose(instance: Instance, reason: LeftReason): void {
    const isSilent = reason === 'expired' || reason === 'unseen'
    const isWorth = isSilent && isHealthy(instance)
    const now = this.#client.clock.now()
    const until = isWorth
      ? this.#brake.lose(instance.id, now, this.#living(instance.id))
      : undefined
    if (until === undefined) {
      this.#drop(instance, reason)
      return
    }
    this.#lapsed.set(instance.id, { until, reason })
    this.#show({ ...instance, status: 'lapsed', note: `its lease has ended (${reason})` }, reason)
    this.#client.emit({
      recipe: 'registry',
      event: 'held-back',
      key: servicesKey(this.service, instance.id),
      token: instance.token,
      detail: 'many instances of the service vanished at once: it is shown as lapsed for a while',
      level: 'warn',
    })
    this.#wakeAt(until)
  }

  #living(except: string): number {
    let count = 0
    for (const [id, instance] of this.#known) if (id !== except && isHealthy(instance)) count++
    return count
  }

  #wakeAt(until: number): void {
    if (this.#timer !== undefined) return
    this.#timer = this.#client.clock.timer(until, () => {
      this.#timer = undefined
      const now = this.#client.clock.now()
      for (const [id, lapsed] of this.#lapsed) {
        // They are in the order in which they lapsed, and all have the same delay.
        if (lapsed.until > now) {
          this.#wakeAt(lapsed.until)
          break
        }
        this.#drop(this.#known.get(id)!, lapsed.reason)
      }
      this.#wake()
    })
  }

  #drop(instance: Instance, reason: LeftReason): void {
    this.#known.delete(instance.id)
    this.#all = undefined
    this.#lapsed.delete(instance.id)
    this.#hide(instance.id, reason)
  }

  #show(instance: Instance, reason: LeftReason = 'unwanted'): void {
    this.#known.set(instance.id, instance)
    this.#all = undefined
    const before = this.#shown.get(instance.id)
    if (!this.#wanted.kind(instance) || !this.#wanted.status(instance)) {
      this.#hide(instance.id, reason, instance)
    } else if (!isSame(before, instance)) {
      this.#shown.set(instance.id, instance)
      this.#instances = undefined
      if (before === undefined) this.#events.emit('joined', { type: 'joined', instance })
      else this.#events.emit('changed', { type: 'changed', instance, before })
    }
  }

  #hide(id: string, reason: LeftReason, now?: Instance): void {
    const before = this.#shown.get(id)
    if (before === undefined) return
    this.#shown.delete(id)
    this.#instances = undefined
    for (const cursor of this.#cursors) cursor.left(id, reason)
    this.#events.emit('left', { type: 'left', instance: now ?? before, reason })
  }

  #wake(): void {
    for (const cursor of this.#cursors) cursor.wake()
  }
}

/** The position of one iterator: what it got last, so that no queue can grow. */
class ChangeCursor {
  readonly #reported = new Map<string, Instance>()
  readonly #reasons = new Map<string, LeftReason>()
  #wake: (() => void) | undefined = undefined

  /** The next step from what it got to what is shown; `undefined` if there is none. */
  next(shown: ReadonlyMap<string, Instance>): Change | undefined {
    for (const [id, instance] of this.#reported) {
      if (shown.has(id)) continue
      this.#reported.delete(id)
      const reason = this.#reasons.get(id)!
      this.#reasons.delete(id)
      return { type: 'left', instance, reason }
    }
    for (const [id, instance] of shown) {
      const before = this.#reported.get(id)
      if (before === instance) continue
      this.#reported.set(id, instance)
      if (before === undefined) return { type: 'joined', instance }
      return { type: 'changed', instance, before }
    }
    return undefined
  }

  left(id: string, reason: LeftReason): void {
    if (this.#reported.has(id)) this.#reasons.set(id, reason)
  }

  changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  wake(): void {
    this.#wake?.()
  }
}

function isSame(a: Instance | undefined, b: Instance): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
