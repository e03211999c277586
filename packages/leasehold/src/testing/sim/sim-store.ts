import {
  type Busy,
  type Changed,
  type Claimed,
  type ClaimRequest,
  type Granted,
  type GrantRequest,
  type Guarantees,
  LeaseholdError,
  type LeaseId,
  type LeaseStore,
  type Notice,
  type Observer,
  type Query,
  type Reading,
  type ReleaseRequest,
  type Renewed,
  type Revoked,
  type RevokeRequest,
  type UpdateRequest,
  type Watch,
  type WatchTarget,
} from '../../port/index.ts'
import type { Network, Stream } from './network.ts'
import type { SimNode } from './sim-node.ts'

/** A store on a node of the world, which others reach over its network. It may be away for a time. */
export class SimServer {
  readonly node: SimNode
  readonly network: Network
  store: LeaseStore | undefined

  constructor(node: SimNode, network: Network) {
    this.node = node
    this.network = network
  }
}

type Method = 'grant' | 'renew' | 'revoke' | 'claim' | 'release' | 'update' | 'read'

/**
 * The store as a client on another node sees it: calls go over the network, and if a call or its
 * answer gets lost, no answer ever arrives; the client's own timeouts must handle that.
 */
export class SimStore implements LeaseStore {
  readonly guarantees: Guarantees
  readonly #client: SimNode
  readonly #server: SimServer
  #closed = false

  constructor(client: SimNode, server: SimServer, guarantees: Guarantees) {
    this.#client = client
    this.#server = server
    this.guarantees = { ...guarantees, inProcess: false }
  }

  grant(request: GrantRequest): Promise<Granted | Busy> {
    return this.#call('grant', request)
  }

  renew(leases: readonly LeaseId[]): Promise<Renewed> {
    return this.#call('renew', leases)
  }

  revoke(request: RevokeRequest): Promise<Revoked> {
    return this.#call('revoke', request)
  }

  claim(request: ClaimRequest): Promise<Claimed | Busy> {
    return this.#call('claim', request)
  }

  release(request: ReleaseRequest): Promise<Changed> {
    return this.#call('release', request)
  }

  update(request: UpdateRequest): Promise<Changed> {
    return this.#call('update', request)
  }

  read<Q extends Query>(query: Q): Promise<Reading<Q>> {
    return this.#call('read', query)
  }

  watch(target: WatchTarget, observer: Observer): Watch {
    return new SimWatch(this.#client, this.#server, target, observer)
  }

  close(): Promise<void> {
    this.#closed = true
    return Promise.resolve()
  }

  #call<A>(method: Method, argument: unknown): Promise<A> {
    const server = this.#server
    const { network } = server
    if (this.#closed) return Promise.reject(new LeaseholdError('closed', 'the store is closed'))
    return new Promise<A>((resolve, reject) => {
      // An answer is for the calling process: it means nothing to one that was started later.
      const asked = this.#client.incarnation
      const answer = (deliver: () => void): void =>
        network.send(server.node, this.#client, () => {
          if (this.#client.incarnation === asked) deliver()
        })
      network.send(this.#client, server.node, () => {
        const { store } = server
        if (!store) return
        const call = store[method] as (argument: unknown) => Promise<A>
        call.call(store, argument).then(
          (result) => answer(() => resolve(result)),
          (error) => answer(() => reject(error)),
        )
      })
    })
  }
}

/** A watch over the network. When the connection breaks, its observer is notified, and it is over. */
class SimWatch implements Watch {
  readonly #client: SimNode
  readonly #server: SimServer
  readonly #observer: Observer
  readonly #whileOpen: (run: () => void) => () => void
  #remote: Watch | undefined
  #stream: Stream | undefined
  #open = true

  constructor(client: SimNode, server: SimServer, target: WatchTarget, observer: Observer) {
    this.#client = client
    this.#server = server
    this.#observer = observer
    this.#whileOpen = (run) => client.guard(run)
    client.onCrash(() => this.close())
    const interrupt = this.#whileOpen(() => this.#interrupted())
    const asked = server.network.stream(client, server.node, interrupt)
    asked.send(() => this.#begin(target))
  }

  close(): void {
    this.#open = false
    this.#stream?.close()
    this.#remote?.close()
  }

  #begin(target: WatchTarget): void {
    const { store, node, network } = this.#server
    if (!this.#open) return
    const interrupt = this.#whileOpen(() => this.#interrupted())
    if (!store) {
      network.world.after(20, interrupt)
      return
    }
    const stream = network.stream(node, this.#client, () => {
      this.#remote?.close()
      interrupt()
    })
    this.#stream = stream
    this.#remote = store.watch(target, (notice) => stream.send(() => this.#receive(notice)))
  }

  #receive(notice: Notice): void {
    if (!this.#open) return
    // After one of these there are no more notices, not even that the connection broke.
    if (notice.type === 'gone' || notice.type === 'compacted' || notice.type === 'interrupted') {
      this.close()
    }
    this.#observer(notice)
  }

  #interrupted(): void {
    if (!this.#open) return
    this.close()
    const error = new LeaseholdError('unknown-outcome', 'the connection broke')
    this.#observer({ type: 'interrupted', error })
  }
}
