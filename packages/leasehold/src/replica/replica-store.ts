import { isRefused, type Refused } from '../kernel/index.ts'
import type { Log } from '../log/index.ts'
import {
  type Busy,
  type Changed,
  type Claimed,
  type ClaimRequest,
  type Clock,
  type Complaint,
  checkClaim,
  checkGrant,
  checkNames,
  checkQuery,
  checkRelease,
  checkRenew,
  checkRevoke,
  checkUpdate,
  checkWatch,
  DEFAULT_LIMITS,
  type Granted,
  type GrantRequest,
  type Guarantees,
  invalid,
  knownNames,
  LeaseholdError,
  type LeaseId,
  type LeaseStore,
  type Limits,
  type Observer,
  type Query,
  type Random,
  type Reading,
  type ReleaseRequest,
  type Renewed,
  type Revoked,
  type RevokeRequest,
  show,
  systemClock,
  systemRandom,
  type Token,
  type UpdateRequest,
  type Watch,
  type WatchTarget,
} from '../port/index.ts'
import type { Command } from './entry.ts'
import { Replica } from './replica.ts'

export interface ReplicaStoreOptions {
  readonly clock?: Clock | undefined
  readonly random?: Random | undefined
  /** The limits of a new log. An existing log keeps its own. */
  readonly limits?: Partial<Limits> | undefined
  /** How long a call waits for its answer, in milliseconds; 10,000 if not given. */
  readonly timeout?: number | undefined
  /** How long renewals wait so that one entry carries many, in milliseconds; 50 if not given. */
  readonly coalesce?: number | undefined
  /** A snapshot is saved after so many bytes of entries; 4 MiB if not given. */
  readonly snapshotBytes?: number | undefined
  /**
   * A member that writes nothing for so many milliseconds is removed; 30,000 if not given. If it is
   * alive, it joins again and resends what was not applied.
   */
  readonly memberTtl?: number | undefined
  /**
   * New tokens are above this number. Use it after a log was restored from a backup while no replica
   * was running. A running replica notices a restore by itself.
   */
  readonly tokensAbove?: Token | undefined
}

const REPLICA_STORE_OPTIONS = knownNames<ReplicaStoreOptions>({
  clock: true,
  random: true,
  limits: true,
  timeout: true,
  coalesce: true,
  snapshotBytes: true,
  memberTtl: true,
  tokensAbove: true,
})

const CLOSED = 'the store is closed: open it again'

/** Opens a store on a log. Every process that does this runs the kernel on the entries of the log. */
export async function replicaStore(
  log: Log,
  options: ReplicaStoreOptions = {},
): Promise<LeaseStore> {
  checkNames('replicaStore', options, REPLICA_STORE_OPTIONS)
  const replica = new Replica({
    log,
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
    limits: { ...DEFAULT_LIMITS, ...options.limits },
    timeout: options.timeout ?? 10_000,
    coalesce: options.coalesce ?? 50,
    snapshotBytes: options.snapshotBytes ?? 4 << 20,
    memberTtl: options.memberTtl ?? 30_000,
    tokensAbove: checkedTokensAbove(options.tokensAbove ?? 0),
  })
  await replica.open()
  return new ReplicaStore(replica, log)
}

/** Tokens are safe integers. This maximum leaves enough of them above it. */
const TOKENS_ABOVE_MAX = Number.MAX_SAFE_INTEGER - 2 ** 40

function checkedTokensAbove(token: Token): Token {
  if (Number.isSafeInteger(token) && token >= 0 && token <= TOKENS_ABOVE_MAX) return token
  throw invalid(
    `tokensAbove is ${show(token)}: it must be an integer from 0 to ${TOKENS_ABOVE_MAX}`,
  )
}

class ReplicaStore implements LeaseStore {
  readonly guarantees: Guarantees
  readonly #replica: Replica
  /** The last known limits of the log: during a reload the machine has none. */
  #lastLimits!: Limits
  #closing: Promise<void> | undefined
  /** How many watches are being opened. `#allOpen` is fulfilled when all of them are open. */
  #opening = 0
  #allOpen: Promise<unknown> = Promise.resolve()

  constructor(replica: Replica, log: Log) {
    this.#replica = replica
    this.guarantees = guaranteesOf(log, this.#limits)
  }

  get #limits(): Limits {
    const { machine } = this.#replica
    if (machine.isInitialized) this.#lastLimits = machine.kernel.limits
    return this.#lastLimits
  }

  grant(request: GrantRequest): Promise<Granted | Busy> {
    return this.#propose(checkGrant(request, this.#limits), { do: 'grant', request })
  }

  claim(request: ClaimRequest): Promise<Claimed | Busy> {
    return this.#propose(checkClaim(request, this.#limits), { do: 'claim', request })
  }

  release(request: ReleaseRequest): Promise<Changed> {
    return this.#propose(checkRelease(request, this.#limits), { do: 'release', request })
  }

  update(request: UpdateRequest): Promise<Changed> {
    return this.#propose(checkUpdate(request, this.#limits), { do: 'update', request })
  }

  revoke(request: RevokeRequest): Promise<Revoked> {
    return this.#propose(checkRevoke(request, this.#limits), { do: 'revoke', request })
  }

  async renew(leases: readonly LeaseId[]): Promise<Renewed> {
    this.#check(checkRenew(leases, this.#limits))
    const { renewMax } = this.#replica
    const calls: Promise<unknown>[] = []
    for (let at = 0; at < leases.length || at === 0; at += renewMax) {
      calls.push(this.#replica.renew(leases.slice(at, at + renewMax)))
    }
    const parts = (await Promise.all(calls)) as Renewed[]
    if (parts.length === 1) return parts[0]!
    return {
      lost: parts.flatMap(({ lost }) => lost),
      capped: parts.flatMap(({ capped }) => capped),
    }
  }

  async read<Q extends Query>(query: Q): Promise<Reading<Q>> {
    this.#check(checkQuery(query, this.#limits))
    await this.#replica.caughtUp()
    return unwrap(this.#replica.machine.kernel.reader.read(query))
  }

  watch(target: WatchTarget, observer: Observer): Watch {
    this.#check(checkWatch(target, observer, this.#limits))
    let watch: Watch | undefined
    let isClosed = false
    const opening = this.#replica.caughtUp().then(
      () => {
        if (!isClosed) watch = this.#begin(target, observer)
      },
      (error: unknown) => {
        if (!isClosed) observer({ type: 'interrupted', error: error as LeaseholdError })
      },
    )
    this.#opening++
    // A chain: each call waits for one promise, however many watches are being opened.
    this.#allOpen = Promise.all([this.#allOpen, opening]).then(() => this.#opening--)
    return {
      close: () => {
        isClosed = true
        watch?.close()
      },
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#replica.close(new LeaseholdError('closed', CLOSED))
    return this.#closing
  }

  #begin(target: WatchTarget, observer: Observer): Watch {
    const { outbox } = this.#replica
    if ('lease' in target) return outbox.watchLease(target.lease, observer)
    return outbox.watchPrefix(target.prefix, target.from, observer)
  }

  #propose<A extends object>(complaint: Complaint, command: Command): Promise<A> {
    const refusal = this.#refusal(complaint)
    if (refusal) return Promise.reject(refusal)
    const propose = () => this.#replica.propose(command) as Promise<A>
    // A watch must report what its caller does next, so changes wait until it is open.
    return this.#opening > 0 ? this.#allOpen.then(propose) : propose()
  }

  #check(complaint: Complaint): void {
    const refusal = this.#refusal(complaint)
    if (refusal) throw refusal
  }

  #refusal(complaint: Complaint): LeaseholdError | undefined {
    if (this.#closing) return new LeaseholdError('closed', CLOSED)
    return complaint && LeaseholdError.from(complaint)
  }
}

function unwrap<A extends object>(answer: A | Refused): A {
  if (isRefused(answer as Refused)) throw LeaseholdError.from((answer as Refused).refusal)
  return answer as A
}

function guaranteesOf({ promises }: Log, limits: Limits): Guarantees {
  const { engine, durability, failoverLoses, notes } = promises
  return {
    engine,
    inProcess: false,
    durability: durability === 'process' ? 'process' : 'engine',
    tokensSurvive: durability === 'process' ? 'process' : failoverLoses ? 'restart' : 'failover',
    ttl: { min: limits.ttlMin, max: limits.ttlMax, step: 0 },
    expiryLateness: 50,
    childLeases: true,
    requestsRemembered: limits.requests,
    eventsKept: limits.events,
    notes,
  }
}
