import type { Client, HoldOptions } from '../../../client/index.ts'
import {
  checkNames,
  type Duration,
  invalid,
  type Key,
  knownNames,
  type LeaseId,
  type Timer,
} from '../../../port/index.ts'
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

/** The default ttl of a registration or a node. */
const PRESENCE_TTL_MS = 15_000
/** The load is published at most this often. */
const LOAD_EVERY_MS = 1000

/** How a registration is kept alive. */
export interface PresenceOptions
  extends Pick<HoldOptions, 'grace' | 'renewEvery' | 'wait' | 'timeout' | 'signal' | 'tied'> {
  /** How long it is seen after its process died. Default: 15 s. */
  readonly ttl?: Duration | undefined
  /**
   * What to do after a revocation. `end`: stay away, because that was intended. `return`: come back
   * as after an outage; the default with `tied`, because the server revokes when the connection
   * breaks. Otherwise the default is `end`.
   */
  readonly onRevoked?: OnRevoked | undefined
}

export interface RegisterOptions extends InstanceSpec, PresenceOptions {
  /** Unique within the service: a taken id is waited for. Default: a random id. */
  readonly id?: string | undefined
}

const REGISTER_OPTIONS = knownNames<RegisterOptions>({
  id: true,
  address: true,
  endpoints: true,
  capabilities: true,
  tags: true,
  metadata: true,
  weight: true,
  zone: true,
  check: true,
  ttl: true,
  grace: true,
  renewEvery: true,
  wait: true,
  timeout: true,
  signal: true,
  onRevoked: true,
  tied: true,
})

/** The node that something is registered under. */
export interface ParentNode {
  readonly node: string
  /** Called every time, because a node that returned has another lease. */
  lease(): LeaseId | undefined
}

export function onRevokedOf({ onRevoked, tied }: PresenceOptions): OnRevoked | undefined {
  return onRevoked ?? (tied ? 'return' : undefined)
}

export function presenceTiming(options: PresenceOptions): HoldOptions {
  const { ttl = PRESENCE_TTL_MS, grace, renewEvery, tied } = options
  return { strategy: 'election', ttl, grace, renewEvery, tied }
}

/**
 * One instance of a service, registered as long as its process renews its lease.
 *
 * It has its own lease, so revoking that lease ends this registration and nothing else. `await
 * using` removes it from discovery at the end of the block; a dead process is removed after its
 * ttl.
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
    super(client, onRevokedOf(options))
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
      throw invalid('the registration has no description: give an object, at least {}')
    }
    checkNames('register', options, REGISTER_OPTIONS)
    return new Registration(client, service, options, parentNode).enter(options)
  }

  get key(): Key {
    return servicesKey(this.service, this.id)
  }

  /** What others see, or will see when it returns. */
  get description(): Description {
    return describe(this.#spec, this.#condition)
  }

  /**
   * Changes the given fields and keeps the rest. Rejects with `lost` while it is absent; the change
   * is published when it returns.
   */
  async update(changes: InstanceSpec): Promise<void> {
    if (typeof changes === 'object') checkNames('update', changes, SPEC_NAMES)
    return this.#change({ ...this.#spec, ...specOf(changes) }, this.#condition)
  }

  /** Starts or ends maintenance, without ending the registration. */
  maintenance(on: boolean, why = ''): Promise<void> {
    const maintenance = on ? why : undefined
    return this.#change(this.#spec, { ...this.#condition, maintenance })
  }

  /**
   * Reports the health. A ttl check needs at least one report per ttl. An unchanged report is
   * written at most three times per ttl, so call it as often as convenient.
   */
  async report(status: CheckStatus, note?: string): Promise<void> {
    const { report, check } = this.description
    const now = this.#client.clock.now()
    const isFresh = now - this.#reportedAt < (check?.ttl ?? Infinity) / 3
    if (report?.status === status && report.note === note && isFresh) return
    const next = { status, note, count: ++this.#reports }
    const published = this.#change(this.#spec, { ...this.#condition, report: next })
    this.#reportedAt = now
    await published.catch((error: unknown) => {
      // The next identical report must be written.
      this.#reportedAt = -Infinity
      throw error
    })
  }

  /**
   * Reports the load, for callers that pick the least loaded. Published at most once a second; if
   * that fails, the next report tries again.
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

  /** Leaves discovery at once. A second call does nothing. */
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
    // Everything is validated before anything is changed.
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

const SPEC_NAMES: ReadonlySet<string> = new Set(FIELDS)

/** The fields that describe the instance. A missing field stays unchanged. */
function specOf(options: InstanceSpec): InstanceSpec {
  if (typeof options !== 'object' || options === null)
    throw invalid('the changes are not an object: give an object with the fields to change')
  return Object.fromEntries(
    FIELDS.filter((field) => field in options).map((field) => [field, options[field]]),
  )
}
