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
  /** The limits of a log that begins with this store. One that has begun keeps its own. */
  readonly limits?: Partial<Limits> | undefined
  /** How long a call waits for its answer, in milliseconds; 10,000 if not given. */
  readonly timeout?: number | undefined
  /** Renewals wait up to so many milliseconds for others to go with them; 50 if not given. */
  readonly coalesce?: number | undefined
  /** So many bytes of entries make a snapshot worth while; 4 MiB if not given. */
  readonly snapshotBytes?: number | undefined
  /**
   * A member of which nothing is heard for so many milliseconds is taken for dead and removed; 30,000
   * if not given. If it lives, it joins again and sends again what was not applied.
   */
  readonly memberTtl?: number | undefined
  /**
   * Tokens go on above this number, if they are not there yet: for a log that was restored from a
   * backup while no replica was running. A replica that was running finds out by itself.
   */
  readonly tokensAbove?: Token | undefined
}

const CLOSED = 'the store is closed: open it again'

/** Opens a store on a log: this process runs the kernel, and so does every other one that does this. */
export async function replicaStore(
  log: Log,
  options: ReplicaStoreOptions = {},
): Promise<LeaseStore> {
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

/** Leaves room for a lifetime of tokens: they are safe integers. */
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
  /** The limits of the log as they were last seen: while it is read anew, there are none. */
  #known!: Limits
  #closing: Promise<void> | undefined
  /** How many watches have not begun yet. `#begun` is fulfilled when all that were opened have. */
  #beginning = 0
  #begun: Promise<unknown> = Promise.resolve()

  constructor(replica: Replica, log: Log) {
    this.#replica = replica
    this.guarantees = guaranteesOf(log, this.#limits)
  }

  get #limits(): Limits {
    const { machine } = this.#replica
    if (machine.isFounded) this.#known = machine.kernel.limits
    return this.#known
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
    const { renewMost } = this.#replica
    const calls: Promise<unknown>[] = []
    for (let at = 0; at < leases.length || at === 0; at += renewMost) {
      calls.push(this.#replica.renew(leases.slice(at, at + renewMost)))
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
    const beginning = this.#replica.caughtUp().then(
      () => {
        if (!isClosed) watch = this.#begin(target, observer)
      },
      (error: unknown) => {
        if (!isClosed) observer({ type: 'interrupted', error: error as LeaseholdError })
      },
    )
    this.#beginning++
    // A chain: each call waits for one promise, however many watches are beginning.
    this.#begun = Promise.all([this.#begun, beginning]).then(() => this.#beginning--)
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
    // A watch sees what its caller does after it: changes wait for watches that are just beginning.
    return this.#beginning > 0 ? this.#begun.then(propose) : propose()
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
