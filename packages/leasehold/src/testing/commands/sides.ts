import { isRefused, Kernel, type Refused } from '../../kernel/index.ts'
import type {
  Event,
  LeaseId,
  LeaseStore,
  Limits,
  Notice,
  Query,
  Reading,
  Tenure,
} from '../../port/index.ts'
import type { Opened } from '../conformance/scene.ts'
import { type Call, Names } from './calls.ts'
import { type Command, KEYS } from './command.ts'
import { KernelWatches } from './kernel-watches.ts'
import {
  normalize,
  normalizeKernelRefusal,
  normalizeRefusal,
  normalizeTenures,
  sorted,
} from './normalize.ts'

export abstract class Side {
  readonly names: Names
  readonly exact: boolean

  constructor(prefix: string, exact: boolean) {
    this.names = new Names(prefix)
    this.exact = exact
  }

  abstract read<Q extends Query>(query: Q): Promise<Reading<Q>>

  /** Everything that can be read of what the commands have made. */
  async everything(): Promise<unknown> {
    const { prefix, leases } = this.names
    const keys = await this.read({ prefix })
    const queues = []
    for (const { key } of keys.keys) queues.push(await this.read({ key }))
    const each = []
    for (const lease of leases) each.push(this.plainReading(await this.read({ lease })))
    const histories = []
    for (const name of KEYS) {
      const key = prefix + name
      const { tenures } = await this.read({ history: key })
      histories.push(normalizeTenures(tenures, key, this.names, this.exact))
    }
    return { keys: this.normalize(keys), queues: this.normalize(queues), each, histories }
  }

  normalize(value: unknown): unknown {
    return normalize(value, this.names, this.exact)
  }

  /** A reading, with the unordered lists sorted. */
  plainReading(reading: object): unknown {
    if ('lease' in reading && 'claims' in reading) {
      return this.normalize({ ...reading, claims: sorted(this.normalize(reading.claims)) })
    }
    if ('leases' in reading && Array.isArray(reading.leases)) {
      const known = new Set(this.names.leases)
      const own = reading.leases.filter(({ id }) => known.has(id))
      return { leases: sorted(this.normalize(own)) }
    }
    if ('tenures' in reading) {
      const tenures = reading.tenures as readonly Tenure[]
      return normalizeTenures(tenures, undefined, this.names, this.exact)
    }
    return this.normalize(reading)
  }
}

/** A store, and others that are open on the same data, like in other processes. */
export interface OpenedStores extends Opened {
  readonly others?: readonly LeaseStore[] | undefined
}

export class StoreSide extends Side {
  readonly stores: readonly LeaseStore[]
  /** For each claim, the store that it was made through. */
  readonly madeThrough: number[] = []
  readonly #advance: Opened['advance']
  /** The store that is called. */
  #at = 0

  constructor({ store, others = [], advance }: OpenedStores, prefix: string) {
    super(prefix, advance !== undefined)
    this.stores = [store, ...others]
    this.#advance = advance
  }

  override read<Q extends Query>(query: Q): Promise<Reading<Q>> {
    return this.stores[this.#at]!.read(query)
  }

  /** Everything that can be read through one of the stores. */
  everythingThrough(store: number): Promise<unknown> {
    this.#at = store
    return this.everything()
  }

  async run(command: Command, store = 0): Promise<unknown> {
    this.#at = store
    const call = this.names.call(command)
    try {
      const answer = await this.#answer(call)
      this.names.learn(call, answer)
      if (this.names.claims.length > this.madeThrough.length) this.madeThrough.push(store)
      return this.plainReading(answer)
    } catch (error) {
      return normalizeRefusal(error, this.names)
    }
  }

  async #answer(call: Call): Promise<object> {
    if (call.method === 'pass') {
      await this.#advance?.(call.argument)
      return {}
    }
    const store = this.stores[this.#at]!
    return (store[call.method] as (argument: unknown) => Promise<object>)(call.argument)
  }
}

export class KernelSide extends Side {
  readonly #kernel: Kernel
  readonly #watches = new KernelWatches()
  #now: number

  constructor(prefix: string, exact: boolean, now: number, limits: Partial<Limits> | undefined) {
    super(prefix, exact)
    this.#kernel = new Kernel({ limits, noticeSink: this.#watches })
    this.#now = now
  }

  override async read<Q extends Query>(query: Q): Promise<Reading<Q>> {
    return this.#kernel.reader.read(query) as Reading<Q>
  }

  run(command: Command): unknown {
    const call = this.names.call(command)
    const answer = this.#answer(call)
    if (isRefused(answer as Refused)) {
      return normalizeKernelRefusal((answer as Refused).refusal, this.names)
    }
    this.names.learn(call, answer)
    return this.plainReading(answer)
  }

  /** The notices of a watch that begins now; the list grows. */
  watch(lease: LeaseId): readonly Notice[] {
    return this.#watches.begin(this.#kernel, lease)
  }

  events(): Event[] {
    const { events } = this.#kernel
    const from = events.after(events.completeAfter)
    return Array.from({ length: events.next - from }, (_, at) => events.event(from + at))
  }

  #answer(call: Call): object {
    const kernel = this.#kernel
    if (call.method === 'pass') return this.#pass(call.argument)
    if (call.method === 'read') return kernel.reader.read(call.argument)
    return (kernel[call.method] as (argument: unknown, now: number) => object)(
      call.argument,
      this.#now,
    )
  }

  /** Like a store's clock: every deadline on the way is a moment of its own. */
  #pass(ms: number): object {
    const end = this.#now + ms
    while (this.#kernel.nextDeadline <= end) {
      this.#now = Math.max(this.#now, this.#kernel.nextDeadline)
      this.#kernel.expire(this.#now, 1)
    }
    this.#now = end
    return {}
  }
}
