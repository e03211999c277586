import type { Client, HoldOptions, View } from '../../../client/index.ts'
import {
  type Event,
  type Key,
  knownNames,
  LeaseholdError,
  type LeaseId,
  show,
  type Token,
} from '../../../port/index.ts'
import {
  functionOf,
  keyPart,
  namesOf,
  objectOf,
  optionsOf,
  recordOf,
  stringOf,
} from '../../arguments.ts'
import type { LeftReason } from '../discovery/discovery.ts'
import { Presence } from './presence.ts'
import {
  onRevokedOf,
  type PresenceOptions,
  presenceTiming,
  type RegisterOptions,
  Registration,
} from './registration.ts'

/** How a node describes itself. */
export interface NodeOptions extends PresenceOptions {
  readonly address?: string | undefined
  readonly metadata?: Readonly<Record<string, string>> | undefined
}

const NODE_OPTIONS = knownNames<NodeOptions>({
  address: true,
  metadata: true,
  ttl: true,
  grace: true,
  renewEvery: true,
  wait: true,
  timeout: true,
  signal: true,
  onRevoked: true,
  tied: true,
})

const nodeKey = (id: string): Key => `nodes/${id}`

/**
 * A node, such as a machine: a lease with its own heartbeat, on the key `nodes/<id>`. What is
 * registered through it ends with it: in the same revision if the store supports child leases,
 * otherwise when this process releases it or its ttl ends.
 */
export class NodeHeartbeat extends Presence {
  readonly id: string
  readonly #client: Client
  readonly #options: NodeOptions
  readonly #json: string
  readonly #services = new Set<Registration>()

  private constructor(client: Client, id: string, options: NodeOptions) {
    super(client, onRevokedOf(options))
    this.#client = client
    this.#options = options
    this.#json = nodeJson(options)
    this.id = keyPart('id', id)
    this.on('ended', () => this.#releaseServices())
  }

  static async begin(client: Client, id: string, options: NodeOptions): Promise<NodeHeartbeat> {
    optionsOf('node', options, NODE_OPTIONS)
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

  /** Ends the node and everything registered on it. A second call does nothing. */
  override async release(): Promise<void> {
    this.#releaseServices()
    await super.release()
  }

  protected value(): string {
    return this.#json
  }

  protected timing(): HoldOptions {
    return { ...presenceTiming(this.#options), labels: { node: this.id } }
  }

  /** The lease to register under. Fails while the node is away. */
  #parentLease(): LeaseId | undefined {
    if (this.state !== 'present') {
      throw new LeaseholdError(
        'lost',
        `node ${show(this.id)} is ${this.state}. Wait until it is present before you register instances on it`,
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

export interface NodeStop {
  /** `absent`: it was expected, but was not there when the watch began. */
  readonly reason: Exclude<LeftReason, 'unwanted'> | 'absent'
  readonly by?: string | undefined
  readonly why?: string | undefined
}

export interface NodesWatchOptions {
  /** A heartbeat has stopped. For a node that was only expected, just the id is known. */
  readonly onStopped?: ((node: NodeInfo | ExpectedNode, stop: NodeStop) => unknown) | undefined
  /** A stopped node is back. */
  readonly onReturned?: ((node: NodeInfo) => unknown) | undefined
  /** A node that was not seen before has started. */
  readonly onStarted?: ((node: NodeInfo) => unknown) | undefined
  /** Expected ids. Those that are missing when the watch begins are reported as stopped. */
  readonly expected?: readonly string[] | undefined
}

export interface ExpectedNode {
  readonly id: string
}

const NODES_WATCH_OPTIONS = knownNames<NodesWatchOptions>({
  onStopped: true,
  onReturned: true,
  onStarted: true,
  expected: true,
})

/** How many stopped nodes are remembered, to tell a returning node from a new one. */
const STOPPED_MAX = 10_000

/**
 * Notifies a controller when the heartbeat of a node stops.
 *
 * **Promised.** This watch reports each stop of each seen or expected node once, also after an
 * outage of the store, in which a node may have stopped, or stopped and returned. A heartbeat is
 * identified by its token.
 *
 * **Not promised.** If there are several controllers, each of them is notified. Let them elect one.
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
    this.#options = optionsOf('nodes.watch', options, NODES_WATCH_OPTIONS)
    this.#expected = namesOf('expected', options.expected)
    for (const name of ['onStopped', 'onReturned', 'onStarted'] as const) {
      if (options[name] !== undefined) functionOf(name, options[name])
    }
    this.#view = client.view('nodes/', (keys, ended) => this.#refresh(keys, ended))
    this.#ready = this.#view.ready.then(() => this.#begin())
    this.#ready.catch(() => {})
  }

  /** Resolves when all nodes are known; rejects if it is closed before. */
  get ready(): Promise<void> {
    return this.#client.awaited(this.#ready)
  }

  /** The live nodes, sorted by id. */
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

  /** A failing listener is reported as an event. It does not affect this watch or the next call. */
  async #call<Name extends 'onStopped' | 'onReturned' | 'onStarted'>(
    name: Name,
    ...args: Parameters<NonNullable<NodesWatchOptions[Name]>>
  ): Promise<void> {
    // A listener may have closed the watch meanwhile.
    if (this.#closed) return
    const listener = this.#options[name] as ((...given: typeof args) => unknown) | undefined
    const key = nodeKey(args[0].id)
    try {
      await listener?.(...args)
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

/** Parses a node's description, as far as it is readable. */
function parseNode(json: string | undefined): Pick<NodeInfo, 'address' | 'metadata'> {
  try {
    const { address, metadata } = objectOf('node', JSON.parse(json ?? ''))
    return {
      address: address === undefined ? undefined : stringOf('address', address, 512),
      metadata: recordOf('metadata', metadata, 1024),
    }
  } catch {
    return { address: undefined, metadata: {} }
  }
}
