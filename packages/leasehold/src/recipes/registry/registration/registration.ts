import type { Client, HoldOptions } from '../../../client/index.ts'
import { type Duration, invalid, type Key, type LeaseId, type Timer } from '../../../port/index.ts'
import { keyPart } from '../../arguments.ts'
import type { CheckStatus } from '../check/check.ts'
import {
  type Condition,
  type Description,
  describe,
  descriptionJson,
  type InstanceSpec,
} from '../instance/description.ts'
import { servicesKey } from '../instance/instance.ts'
import { type OnRevoked, Presence } from './presence.ts'

/** How long a registration or a node lives without its heartbeat, unless it says so itself. */
const PRESENCE_TTL_MS = 15_000
/** A load that changes all the time is told at most so often. */
const LOAD_EVERY_MS = 1000

/** How a registration is kept. */
export interface PresenceOptions
  extends Pick<HoldOptions, 'grace' | 'renewEvery' | 'wait' | 'signal'> {
  /** How long it is seen after its process died. 15 s if not given. */
  readonly ttl?: Duration | undefined
  /**
   * What it does when it was taken away by force: it stays away (`end`), since whoever did that meant
   * it, or comes back as after an outage (`return`). The latter is for leases that are tied to a
   * connection, which the server revokes when that breaks. `end` if not given.
   */
  readonly onRevoked?: OnRevoked | undefined
}

export interface RegisterOptions extends InstanceSpec, PresenceOptions {
  /** Unique within the service. A random one if not given. Somebody else's is waited for in line. */
  readonly id?: string | undefined
}

/** The lease that something is registered under, where it is under one: a node's. */
export interface ParentNode {
  readonly node: string
  /** Asked for each time, since a node that came back has another lease. */
  lease(): LeaseId | undefined
}

export function presenceTiming(options: PresenceOptions): HoldOptions {
  const { ttl = PRESENCE_TTL_MS, grace, renewEvery } = options
  return { strategy: 'election', ttl, grace, renewEvery }
}

/**
 * One instance of a service, registered for as long as its process keeps its lease alive.
 *
 * It has a lease of its own, so that taking that away takes the registration, whatever was put under
 * it, and nothing else. Leaving the block that it was declared in with `await using` takes it
 * out of discovery at once; a process that dies is out when its ttl is over.
 */
export class Registration extends Presence {
  readonly service: string
  readonly id: string
  readonly #client: Client
  readonly #options: RegisterOptions
  readonly #parentNode: ParentNode | undefined
  #spec: InstanceSpec
  #condition: Condition
  #reports = 0
  #reportedAt = -Infinity
  #loadTimer: Timer | undefined = undefined
  #loadAt = -Infinity

  private constructor(
    client: Client,
    service: string,
    options: RegisterOptions,
    parentNode?: ParentNode,
  ) {
    super(client, options.onRevoked)
    this.#client = client
    this.#options = options
    this.#parentNode = parentNode
    this.service = keyPart('service', service)
    this.id = options.id === undefined ? client.random.id().slice(0, 12) : keyPart('id', options.id)
    this.#spec = specOf(options)
    this.#condition = { node: parentNode?.node }
    descriptionJson(describe(this.#spec, this.#condition))
  }

  static async begin(
    client: Client,
    service: string,
    options: RegisterOptions,
    parentNode?: ParentNode,
  ): Promise<Registration> {
    if (typeof options !== 'object' || options === null) {
      throw invalid('a registration needs an object that describes the instance, if only {}')
    }
    return new Registration(client, service, options, parentNode).enter(options)
  }

  get key(): Key {
    return servicesKey(this.service, this.id)
  }

  /** What others are told, or will be when they can be told again. */
  get description(): Description {
    return describe(this.#spec, this.#condition)
  }

  /**
   * Changes what is given and leaves the rest. Rejected with `lost` while it is absent: others are
   * told when it returns.
   */
  update(changes: InstanceSpec): Promise<void> {
    return this.#change({ ...this.#spec, ...specOf(changes) }, this.#condition)
  }

  /** Takes it out of use, or puts it back, without ending the registration. */
  maintenance(on: boolean, why = ''): Promise<void> {
    const maintenance = on ? why : undefined
    return this.#change(this.#spec, { ...this.#condition, maintenance })
  }

  /**
   * Says how it is. With a ttl check this must be written at least once per ttl; what has not changed
   * is written at most three times per ttl, so it may be written as often as is convenient.
   */
  async report(status: CheckStatus, note?: string): Promise<void> {
    const { report, check } = this.description
    const now = this.#client.clock.now()
    const isFresh = now - this.#reportedAt < (check?.ttl ?? Infinity) / 3
    if (report?.status === status && report.note === note && isFresh) return
    const next = { status, note, count: ++this.#reports }
    const told = this.#change(this.#spec, { ...this.#condition, report: next })
    this.#reportedAt = now
    await told.catch((error: unknown) => {
      // Made again, it must be told again.
      this.#reportedAt = -Infinity
      throw error
    })
  }

  /**
   * Says how busy it is, for callers that pick the least loaded. Told to others at most once a
   * second, the latest value last; what cannot be told is left to the next.
   */
  reportLoad(load: number): void {
    const condition = { ...this.#condition, load }
    describe(this.#spec, condition)
    this.#condition = condition
    if (this.#loadTimer !== undefined || this.state === 'ended') return
    const { clock } = this.#client
    const time = Math.max(clock.now(), this.#loadAt + LOAD_EVERY_MS)
    this.#loadTimer = clock.timer(time, () => {
      this.#loadTimer = undefined
      this.#loadAt = clock.now()
      this.publish().catch(() => {})
    })
  }

  /** Leaves discovery at once. Doing so twice does nothing. */
  override async release(): Promise<void> {
    this.#loadTimer?.cancel()
    await super.release()
  }

  protected value(): string {
    return descriptionJson(this.description)
  }

  protected timing(): HoldOptions {
    const labels = { service: this.service, instance: this.id }
    return { ...presenceTiming(this.#options), labels, parent: this.#parentNode?.lease() }
  }

  async #change(spec: InstanceSpec, condition: Condition): Promise<void> {
    // All of it is judged before any of it is kept.
    descriptionJson(describe(spec, condition))
    this.#spec = spec
    this.#condition = condition
    await this.publish()
  }
}

const FIELDS = [
  'address',
  'endpoints',
  'capabilities',
  'tags',
  'metadata',
  'weight',
  'zone',
  'check',
] as const satisfies readonly (keyof InstanceSpec)[]

/** What describes the instance, of what was given: a field that is not there is left as it is. */
function specOf(options: InstanceSpec): InstanceSpec {
  if (typeof options !== 'object' || options === null) throw invalid('give an object with changes')
  return Object.fromEntries(
    FIELDS.filter((field) => field in options).map((field) => [field, options[field]]),
  )
}
