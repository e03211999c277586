import {
  type Busy,
  type Changed,
  type Claimed,
  type ClaimRequest,
  type Complaint,
  checkClaim,
  checkGrant,
  checkQuery,
  checkRelease,
  checkRenew,
  checkRevoke,
  checkUpdate,
  checkWatch,
  type Granted,
  type GrantRequest,
  type Guarantees,
  LeaseholdError,
  type LeaseId,
  type LeaseStore,
  type Limits,
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
import { Api } from './api.ts'
import { release, update } from './changing.ts'
import { claim, grant } from './claiming.ts'
import type { Context } from './context.ts'
import { closedError, unanswered } from './faults.ts'
import { ENDS_MS, etcdGuarantees, REQUESTS_MS } from './guarantees.ts'
import { JointTxns } from './joint-txns.ts'
import { KeepAlive } from './keep-alive.ts'
import { Known } from './known.ts'
import { Layout } from './layout.ts'
import { Lives } from './lives.ts'
import { Memory, RequestMemory } from './memory.ts'
import { type EtcdStoreOptions, type Settings, settingsOf } from './options.ts'
import { read } from './reading.ts'
import { renew } from './renewing.ts'
import { revoke } from './revoking.ts'
import { EtcdFault, Transport } from './transport.ts'
import { WatchStream } from './watch-stream.ts'
import { Watches } from './watches.ts'

/** What is given up in time says why: it comes before the time-out of the whole. */
const SETTLING_MS = 100

/**
 * A store in etcd, from 3.4 on. A lease is an etcd lease, a claim is a key that is tied to it, its
 * token is the revision of that key's creation, and who holds is what the list of a key's claims
 * says: see `layout.ts`. Every call is one transaction where that is possible, so that it happens as
 * a whole, in one revision, or not at all.
 *
 * Nothing is sent until the first call.
 */
export function etcdStore(options: EtcdStoreOptions): LeaseStore {
  return new EtcdStore(settingsOf(options))
}

class EtcdStore implements LeaseStore {
  readonly guarantees: Guarantees
  readonly #limits: Limits
  readonly #endpoints: readonly string[]
  readonly #timeout: number
  readonly #transport: Transport
  readonly #context: Context
  readonly #keepAlive: KeepAlive
  readonly #lives: Lives
  readonly #stream: WatchStream
  readonly #watches: Watches
  #closed = false

  constructor({ prefix, limits, clock, random, transport: options }: Settings) {
    this.guarantees = etcdGuarantees(limits)
    this.#limits = limits
    this.#endpoints = options.endpoints
    this.#timeout = options.timeout
    this.#transport = new Transport(options)
    const api = new Api(this.#transport, random)
    const layout = new Layout(prefix)
    this.#keepAlive = new KeepAlive(this.#transport, options)
    this.#lives = new Lives(clock)
    this.#stream = new WatchStream(this.#transport, options)
    this.#watches = new Watches(this.#stream, this.#lives)
    const instance = random.id()
    let names = 0
    this.#context = {
      ...{ api, layout, clock, random, limits, news: this.#watches },
      joint: new JointTxns(api, clock),
      known: new Known(api, layout, clock),
      requests: new RequestMemory(new Memory(api, clock, REQUESTS_MS)),
      ends: new Memory(api, clock, ENDS_MS),
      nonce: () => `${instance}${(++names).toString(36)}`,
    }
    this.#watches.use(this.#context)
  }

  async grant(request: GrantRequest): Promise<Granted | Busy> {
    this.#check(() => checkGrant(request, this.#limits))
    if (request.parent !== undefined) throw noParents()
    return this.#run(grant(this.#context, request))
  }

  async renew(leases: readonly LeaseId[]): Promise<Renewed> {
    this.#check(() => checkRenew(leases, this.#limits))
    return this.#run(this.#inTime(renew(this.#context, this.#keepAlive, this.#lives, leases)))
  }

  async revoke(request: RevokeRequest): Promise<Revoked> {
    this.#check(() => checkRevoke(request, this.#limits))
    return this.#run(revoke(this.#context, request))
  }

  async claim(request: ClaimRequest): Promise<Claimed | Busy> {
    this.#check(() => checkClaim(request, this.#limits))
    return this.#run(claim(this.#context, request))
  }

  async release(request: ReleaseRequest): Promise<Changed> {
    this.#check(() => checkRelease(request, this.#limits))
    return this.#run(release(this.#context, request))
  }

  async update(request: UpdateRequest): Promise<Changed> {
    this.#check(() => checkUpdate(request, this.#limits))
    return this.#run(update(this.#context, request))
  }

  async read<Q extends Query>(query: Q): Promise<Reading<Q>> {
    this.#check(() => checkQuery(query, this.#limits))
    return this.#run(read(this.#context, query) as Promise<Reading<Q>>)
  }

  watch(target: WatchTarget, observer: Observer): Watch {
    this.#check(() => checkWatch(target, observer, this.#limits))
    return this.#watches.open({ ...target }, observer)
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#watches.close(closedError())
    this.#lives.close()
    this.#keepAlive.close()
    this.#stream.close()
    this.#transport.close()
  }

  #check(check: () => Complaint): void {
    if (this.#closed) throw closedError()
    const complaint = check()
    if (complaint) throw LeaseholdError.from(complaint)
  }

  /**
   * A renewal is a heartbeat and then mostly a reading, each with a time-out of its own. But whoever
   * renews needs to know in time: together they take no longer than one.
   */
  #inTime<A>(call: Promise<A>): Promise<A> {
    const { clock } = this.#context
    return new Promise((resolve, reject) => {
      const timer = clock.timer(clock.now() + this.#timeout + SETTLING_MS, () => {
        reject(unanswered(`no answer within ${this.#timeout} ms`, this.#endpoints))
      })
      call.then(resolve, reject).finally(() => timer.cancel())
    })
  }

  /** What no call expects of etcd is not understood, so that nobody knows what came of it. */
  async #run<A>(call: Promise<A>): Promise<A> {
    try {
      return await call
    } catch (error) {
      if (error instanceof LeaseholdError) throw error
      const said = error instanceof EtcdFault ? `etcd said '${error.message}'` : String(error)
      throw unanswered(said, this.#endpoints)
    }
  }
}

function noParents(): LeaseholdError {
  return new LeaseholdError(
    'unsupported',
    'a lease under a parent cannot be kept in etcd, which ends each lease by itself: use a store whose guarantees have childLeases',
  )
}
