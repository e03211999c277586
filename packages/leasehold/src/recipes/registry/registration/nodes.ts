import type { Client, HoldOptions, View } from '../../../client/index.ts'
import {
  type Event,
  type Key,
  LeaseholdError,
  type LeaseId,
  show,
  type Token,
} from '../../../port/index.ts'
import { functionOf, keyPart, namesOf, objectOf, recordOf, stringOf } from '../../arguments.ts'
import type { LeftReason } from '../discovery/discovery.ts'
import { Presence } from './presence.ts'
import {
  type PresenceOptions,
  presenceTiming,
  type RegisterOptions,
  Registration,
} from './registration.ts'

/** What a node says of itself. */
export interface NodeOptions extends PresenceOptions {
  readonly address?: string | undefined
  readonly metadata?: Readonly<Record<string, string>> | undefined
}

const nodeKey = (id: string): Key => `nodes/${id}`

/**
 * A node, such as a machine: a lease with a heartbeat of its own, on the key `nodes/<id>`. What is
 * registered through it ends with it: in one revision where the store has leases under leases, and
 * otherwise as soon as this process, or the ttl of each, sees to it.
 */
export class NodeHeartbeat extends Presence {
  readonly id: string
  readonly #client: Client
  readonly #options: NodeOptions
  readonly #text: string
  readonly #services = new Set<Registration>()

  private constructor(client: Client, id: string, options: NodeOptions) {
    super(client, options.onRevoked)
    this.#client = client
    this.#options = options
    this.#text = nodeJson(options)
    this.id = keyPart('id', id)
    this.on('ended', () => this.#releaseServices())
  }

  static async begin(client: Client, id: string, options: NodeOptions): Promise<NodeHeartbeat> {
    objectOf('options', options)
    return new NodeHeartbeat(client, id, options).enter(options)
  }

  get key(): Key {
    return nodeKey(this.id)
  }

  /** Registers an instance of a service that runs on this node and ends with it. */
  async register(service: string, options: RegisterOptions): Promise<Registration> {
    const parentNode = { node: this.id, lease: () => this.#parentLease() }
    const registration = await Registration.begin(this.#client, service, options, parentNode)
    for (const other of this.#services) if (other.state === 'ended') this.#services.delete(other)
    this.#services.add(registration)
    return registration
  }

  /** Ends the node and all that is registered on it. Doing so twice does nothing. */
  override async release(): Promise<void> {
    this.#releaseServices()
    await super.release()
  }

  protected value(): string {
    return this.#text
  }

  protected timing(): HoldOptions {
    return { ...presenceTiming(this.#options), labels: { node: this.id } }
  }

  /** The lease to register under. While the node is away nothing can be on it. */
  #parentLease(): LeaseId | undefined {
    if (this.state !== 'present') {
      throw new LeaseholdError(
        'lost',
        `node ${show(this.id)} is ${this.state}: nothing can be on it`,
      )
    }
    return this.#client.guarantees.childLeases ? this.lease : undefined
  }

  #releaseServices(): void {
    for (const registration of this.#services) registration.release().catch(() => {})
    this.#services.clear()
  }
}

/** A node as others see it. */
export interface NodeInfo {
  readonly id: string
  readonly address: string | undefined
  readonly metadata: Readonly<Record<string, string>>
  readonly holder: string
  readonly lease: LeaseId
  readonly token: Token
}

/** How a node's heartbeat stopped. */
export interface NodeStop {
  /** `absent`: it was expected, and was not there when the watch began. */
  readonly reason: Exclude<LeftReason, 'unwanted'> | 'absent'
  readonly by?: string | undefined
  readonly why?: string | undefined
}

export interface NodesWatchOptions {
  /** A heartbeat has stopped. Of one that was only expected, nothing but the id is known. */
  readonly onStopped?: ((node: NodeInfo | ExpectedNode, stop: NodeStop) => unknown) | undefined
  /** A node that had stopped is back. */
  readonly onReturned?: ((node: NodeInfo) => unknown) | undefined
  /** A node is there that had not been seen before. */
  readonly onStarted?: ((node: NodeInfo) => unknown) | undefined
  /** Ids that ought to be there: those that are not when the watch begins have stopped before it. */
  readonly expected?: readonly string[] | undefined
}

export interface ExpectedNode {
  readonly id: string
}

/** So many stopped nodes are remembered, to know one that returns from one that is new. */
const STOPPED_MAX = 10_000

/**
 * Tells a controller when the heartbeat of a node stops.
 *
 * **Promised.** Each stop of each node that was seen or expected is told once to this watch, and after
 * an outage of the store too, during which a node may have stopped, or stopped and returned: a
 * heartbeat is known by its token, and each token that was seen is told to have stopped once.
 *
 * **Not promised.** That one of several controllers acts: each of them is told. Have them elect one.
 */
export class NodesWatch implements Disposable {
  readonly #client: Client
  readonly #ready: Promise<void>
  readonly #options: NodesWatchOptions
  readonly #expected: readonly string[]
  readonly #view: View
  readonly #nodes = new Map<string, NodeInfo>()
  readonly #stopped = new Set<string>()
  #isReady = false
  #closed = false

  constructor(client: Client, options: NodesWatchOptions = {}) {
    this.#client = client
    this.#options = objectOf('options', options)
    this.#expected = namesOf('expected', options.expected)
    for (const name of ['onStopped', 'onReturned', 'onStarted'] as const) {
      if (options[name] !== undefined) functionOf(name, options[name])
    }
    this.#view = client.view('nodes/', (keys, ended) => this.#refresh(keys, ended))
    this.#ready = this.#view.ready.then(() => this.#begin())
    this.#ready.catch(() => {})
  }

  /** Fulfilled when it has seen all nodes once; rejected if it is closed before. */
  get ready(): Promise<void> {
    return this.#client.awaited(this.#ready)
  }

  /** The nodes whose hearts beat, by id. */
  get nodes(): readonly NodeInfo[] {
    return [...this.#nodes.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  get live(): boolean {
    return this.#view.live
  }

  age(): number {
    return this.#view.age()
  }

  close(): void {
    this.#closed = true
    this.#view.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #begin(): void {
    this.#isReady = true
    this.#refresh(new Set(this.#view.keys()), [])
    for (const id of this.#expected) {
      if (this.#nodes.has(id)) continue
      this.#remember(id)
      this.#call('onStopped', { id }, { reason: 'absent' })
    }
  }

  #refresh(keys: ReadonlySet<Key>, ended: readonly Event[]): void {
    if (!this.#isReady) return
    for (const key of keys) this.#refreshKey(key, ended)
  }

  #refreshKey(key: Key, ended: readonly Event[]): void {
    const [place] = this.#view.places(key)
    const id = key.slice(nodeKey('').length)
    const before = this.#nodes.get(id)
    if (before !== undefined && before.token !== place?.token) {
      const end = ended.find(({ token, key: its }) => its === key && token === before.token)?.end
      this.#nodes.delete(id)
      this.#remember(id)
      this.#call('onStopped', before, end ?? { reason: 'unseen' })
    }
    if (place === undefined || place.token === before?.token) return
    const { holder, lease, token, value } = place
    const node = { id, ...parseNode(value), holder, lease, token }
    this.#nodes.set(id, node)
    if (this.#stopped.delete(id)) this.#call('onReturned', node)
    else this.#call('onStarted', node)
  }

  #remember(id: string): void {
    this.#stopped.add(id)
    if (this.#stopped.size <= STOPPED_MAX) return
    for (const oldest of this.#stopped) {
      this.#stopped.delete(oldest)
      return
    }
  }

  /** A controller that fails is told of in the news: it harms neither this nor the next call. */
  async #call<Name extends 'onStopped' | 'onReturned' | 'onStarted'>(
    name: Name,
    ...news: Parameters<NonNullable<NodesWatchOptions[Name]>>
  ): Promise<void> {
    // A listener may have closed it in the middle of the news.
    if (this.#closed) return
    const listener = this.#options[name] as ((...args: typeof news) => unknown) | undefined
    const key = nodeKey(news[0].id)
    try {
      await listener?.(...news)
    } catch (error) {
      const detail = `${name} failed: ${String(error)}`
      this.#client.emit({ recipe: 'registry', event: 'failed', key, detail, level: 'error' })
    }
  }
}

function nodeJson({ address, metadata }: NodeOptions): string {
  return JSON.stringify({
    address: address === undefined ? undefined : stringOf('address', address, 512),
    metadata: recordOf('metadata', metadata, 1024),
  })
}

/** What a node written of itself, as far as it can be read. */
function parseNode(text: string | undefined): Pick<NodeInfo, 'address' | 'metadata'> {
  try {
    const { address, metadata } = objectOf('node', JSON.parse(text ?? ''))
    return {
      address: address === undefined ? undefined : stringOf('address', address, 512),
      metadata: recordOf('metadata', metadata, 1024),
    }
  } catch {
    return { address: undefined, metadata: {} }
  }
}
