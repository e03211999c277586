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
import { Calls } from './calls.ts'
import { Claiming } from './claiming.ts'
import { Ending } from './ending.ts'
import { closed, storeFault } from './faults.ts'
import { Follower } from './follower.ts'
import { zookeeperGuarantees } from './guarantees.ts'
import { Journal } from './journal.ts'
import { Lessor } from './lessor.ts'
import { open } from './opening.ts'
import { settingsOf, type ZookeeperStoreOptions } from './options.ts'
import { Readings } from './reading.ts'
import { Sessions } from './sessions.ts'
import { Tree } from './tree.ts'
import { Trimmer } from './trimmer.ts'
import { Undertaker } from './undertaker.ts'
import { Watches } from './watches.ts'
import { CREATOR, OPEN } from './wire/index.ts'

/**
 * A store on a ZooKeeper ensemble. Fulfilled when the ensemble was reached, so that its guarantees
 * are known; refused with `timeout` where it was not.
 *
 * Closing it ends no lease: the sessions that they live by are left, and run out.
 */
export async function zookeeperStore(options: ZookeeperStoreOptions): Promise<LeaseStore> {
  const settings = settingsOf(options)
  try {
    return new ZookeeperStore(await open(settings), settings)
  } catch (error) {
    throw storeFault(error)
  }
}

type Opened = Awaited<ReturnType<typeof open>>
type Settings = ReturnType<typeof settingsOf>

class ZookeeperStore implements LeaseStore {
  readonly guarantees: Guarantees
  readonly #limits: Limits
  readonly #opened: Opened
  readonly #sessions: Sessions
  readonly #lessor: Lessor
  readonly #undertaker: Undertaker
  readonly #calls: Calls
  readonly #readings: Readings
  readonly #watches: Watches
  #closing: Promise<void> | undefined

  constructor(opened: Opened, { limits, auth, clock, random }: Settings) {
    const { main, options, shortest, paths } = opened
    this.#opened = opened
    this.#limits = { ...limits, ttlMin: Math.max(limits.ttlMin, shortest / 2) }
    this.guarantees = zookeeperGuarantees(this.#limits, shortest)
    const tree = new Tree(paths, main, options.horizon)
    const acl = auth ? CREATOR : OPEN
    const journal = new Journal({ tree, acl, limits: this.#limits, clock, random })
    const ending = new Ending(journal)
    this.#sessions = new Sessions(options, shortest, (session) => this.#lessor.replaced(session))
    this.#lessor = new Lessor(journal, ending, this.#sessions)
    this.#undertaker = new Undertaker(journal, ending, this.#lessor)
    this.#readings = new Readings(journal, this.#lessor)
    const follower = new Follower(journal, (id) => this.#undertaker.suspect(id))
    this.#watches = new Watches({
      tree,
      follower,
      bury: (id) => this.#undertaker.bury(id),
      holds: (id, token, states) => this.#lessor.holds(id, token, states),
      remaining: (id, { cap }) => this.#remaining(id) ?? cap?.after ?? 0,
      clear: async (prefix) => {
        const keys = await tree.keys(await tree.keysUnder(prefix))
        await this.#undertaker.endDead(keys.flatMap(({ line }) => line))
      },
    })
    const claiming = new Claiming(journal, {
      endDead: (places) => this.#undertaker.endDead(places),
      describe: (state, picked) => this.#readings.claim(state, picked),
    })
    this.#calls = new Calls(journal, this.#lessor, claiming, ending, this.#watches)
    this.#undertaker.startRounds()
    new Trimmer(journal).look()
  }

  grant(request: GrantRequest): Promise<Granted | Busy> {
    return this.#carryOut(
      () => checkGrant(request, this.#limits) ?? this.#checkSize(request),
      () => this.#calls.grant(request),
    )
  }

  renew(leases: readonly LeaseId[]): Promise<Renewed> {
    return this.#carryOut(
      () => checkRenew(leases, this.#limits),
      () => this.#lessor.renew(leases),
    )
  }

  revoke(request: RevokeRequest): Promise<Revoked> {
    return this.#carryOut(
      () => checkRevoke(request, this.#limits),
      () => this.#calls.revoke(request),
    )
  }

  claim(request: ClaimRequest): Promise<Claimed | Busy> {
    return this.#carryOut(
      () => checkClaim(request, this.#limits),
      () => this.#calls.claim(request),
    )
  }

  release(request: ReleaseRequest): Promise<Changed> {
    return this.#carryOut(
      () => checkRelease(request, this.#limits),
      () => this.#calls.release(request),
    )
  }

  update(request: UpdateRequest): Promise<Changed> {
    return this.#carryOut(
      () => checkUpdate(request, this.#limits),
      () => this.#calls.update(request),
    )
  }

  read<Q extends Query>(query: Q): Promise<Reading<Q>> {
    return this.#carryOut(
      () => checkQuery(query, this.#limits),
      () => this.#readings.read(query) as Promise<Reading<Q>>,
    )
  }

  watch(target: WatchTarget, observer: Observer): Watch {
    const obstacle = this.#obstacle(() => checkWatch(target, observer, this.#limits))
    if (obstacle) throw obstacle
    return this.#watches.watch(target, observer)
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#lessor.close()
    this.#undertaker.close()
    this.#watches.close(closed())
    await Promise.all([this.#sessions.close(), this.#opened.main.close('end')])
  }

  async #carryOut<A>(check: () => Complaint, call: () => Promise<A>): Promise<A> {
    const obstacle = this.#obstacle(check)
    if (obstacle) throw obstacle
    try {
      return await call()
    } catch (error) {
      throw storeFault(error)
    }
  }

  #obstacle(check: () => Complaint): LeaseholdError | undefined {
    if (this.#closing) return closed()
    const complaint = check()
    return complaint && LeaseholdError.from(complaint)
  }

  #checkSize({ claims }: GrantRequest): Complaint {
    const most = this.#limits.claimsPerLease
    if (claims === undefined || claims.length <= most) return undefined
    return {
      code: 'limit-exceeded',
      message: `a lease has at most ${most} claims, not ${claims.length}: claim fewer, or use several leases`,
    }
  }

  #remaining(id: LeaseId): number | undefined {
    const kept = this.#lessor.get(id)
    return kept && Math.max(0, kept.endOfLife - this.#opened.options.clock.now())
  }
}
