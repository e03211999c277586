import type {
  Busy,
  Changed,
  Claimed,
  ClaimRequest,
  ClaimSpec,
  Granted,
  GrantRequest,
  Guarantees,
  LeaseId,
  LeaseStore,
  Notice,
  Observer,
  Query,
  Reading,
  ReleaseRequest,
  Renewed,
  Revoked,
  RevokeRequest,
  UpdateRequest,
  Watch,
  WatchTarget,
} from 'leasehold/port'
import type { LeaseRecord } from '../checkers/history.js'
import type { Observation } from '../checkers/observation.js'
import { exercised } from '../coverage.js'
import type { Harness } from './harness.js'

type Observed = Observation extends infer One
  ? One extends Observation
    ? Omit<One, 'client'>
    : never
  : never

/**
 * The store as a client sees it. It records what the client receives: when the renewals were sent
 * that were answered, which leases are gone, and what was said of each revision.
 */
export class RecordedStore implements LeaseStore {
  readonly guarantees: Guarantees
  readonly #harness: Harness
  readonly #client: string
  readonly #inner: LeaseStore
  readonly #stream: string | undefined
  readonly #firstSent = new Map<string, number>()

  constructor(harness: Harness, client: string, inner: LeaseStore, stream?: string) {
    this.#harness = harness
    this.#client = client
    this.#inner = inner
    this.#stream = stream
    this.guarantees = inner.guarantees
  }

  grant(request: GrantRequest): Promise<Granted | Busy> {
    exercised('grant', request)
    // A repeated request may be answered for its first sending.
    const { request: id = '', claims } = request
    const sent = this.#firstSent.get(id) ?? this.#harness.world.now
    if (id) this.#firstSent.set(id, sent)
    return this.#inner.grant(request).then((answer) => {
      if (answer.outcome === 'granted') this.#granted(request, answer.lease, sent)
      if (claims !== undefined && claims.length > 0) {
        this.#placed(request, claims, answer, answer.outcome === 'granted' ? answer.lease : '')
      }
      return answer
    })
  }

  renew(leases: readonly LeaseId[]): Promise<Renewed> {
    exercised('renew', {})
    const harness = this.#harness
    const sent = harness.world.now
    const known = leases.map((lease) => harness.leases.get(lease)?.renewedFrom ?? -Infinity)
    return this.#inner.renew(leases).then((answer) => {
      for (let at = 0; at < leases.length; at++) {
        const id = leases[at]!
        const lease = harness.leases.get(id)
        if (!lease) continue
        const loss = answer.lost.find((one) => one.lease === id)
        const capped = answer.capped.find((one) => one.lease === id)
        const end = loss?.end
        const lost = loss !== undefined
        harness.renewed({ lease, sent, knownAtSending: known[at]!, lost, end, capped })
        if (loss) harness.gone(id, end)
        else this.#renewed(lease, sent)
      }
      return answer
    })
  }

  claim(request: ClaimRequest): Promise<Claimed | Busy> {
    exercised('claim', request)
    const record = this.#harness.leases.get(request.lease)
    if (record) record.claimed = true
    return this.#inner.claim(request).then((answer) => {
      this.#placed(request, request.claims, answer, request.lease)
      return answer
    })
  }

  release(request: ReleaseRequest): Promise<Changed> {
    exercised('release', request)
    const { lease, keys, token } = request
    return this.#inner.release(request).then((answer) => {
      this.#observe({ type: 'released', revision: answer.revision, lease, keys, token })
      return answer
    })
  }

  update(request: UpdateRequest): Promise<Changed> {
    exercised('update', request)
    const { key, token, value } = request
    return this.#inner.update(request).then((answer) => {
      this.#observe({ type: 'updated', revision: answer.revision, key, token, value })
      return answer
    })
  }

  revoke(request: RevokeRequest): Promise<Revoked> {
    exercised('revoke', request)
    const force = this.#harness.forced(this.#client, request)
    return this.#inner.revoke(request).then((answer) => {
      const { revision, leases, claims, more } = answer
      const { after, target } = request
      // A break that changed nothing, because the lease ends as soon without it, is no limit itself.
      const isVain = after !== undefined && leases === 0
      if (!isVain) force.answered = Math.min(force.answered, this.#harness.world.now)
      if (!after) this.#observe({ type: 'revoked', revision, target, leases, claims, more })
      return answer
    })
  }

  read<Q extends Query>(query: Q): Promise<Reading<Q>> {
    exercised('read', query)
    return this.#inner.read(query).then((reading) => {
      this.#readingOf(query, reading as Reading)
      return reading
    })
  }

  watch(target: WatchTarget, observer: Observer): Watch {
    exercised('watch', target)
    return this.#inner.watch(target, (notice) => {
      exercised('notice', { [notice.type]: true })
      if ('lease' in target) this.#noticed(target.lease, notice)
      observer(notice)
    })
  }

  close(): Promise<void> {
    exercised('close', {})
    return this.#inner.close()
  }

  #granted(request: GrantRequest, lease: LeaseId, sent: number): void {
    if (this.#harness.leases.has(lease)) return
    const { ttl, grace = 0, maxLife = Infinity, parent, holder, claims } = request
    const claimed = claims !== undefined && claims.length > 0
    const record: LeaseRecord = {
      ...{ lease, holder, ttl, grace, maxLife, parent, claimed, stream: this.#stream },
      ...{ grantedFrom: sent, grantedBy: this.#harness.world.now, renewedFrom: sent, ended: false },
      ...{ toldAt: this.#harness.world.now, knownBefore: sent },
    }
    this.#harness.leases.set(lease, record)
  }

  #renewed(lease: LeaseRecord, sent: number): void {
    const { now } = this.#harness.world
    if (lease.toldAt < now) {
      lease.toldAt = now
      lease.knownBefore = lease.renewedFrom
    }
    lease.renewedFrom = Math.max(lease.renewedFrom, sent)
  }

  #placed(
    request: GrantRequest | ClaimRequest,
    claims: readonly ClaimSpec[],
    answer: Granted | Claimed | Busy,
    lease: LeaseId,
  ): void {
    const { revision, ahead } = answer
    if (answer.outcome === 'busy') this.#observe({ type: 'busy', revision, claims, ahead })
    else {
      const { token, holds } = answer
      const { ifFree = false } = request
      const replaces = 'replaces' in request ? request.replaces : undefined
      this.#observe({
        ...{ type: 'placed', revision, lease, claims, ifFree, replaces, token, holds, ahead },
      })
    }
  }

  #readingOf(query: Query, reading: Reading): void {
    const { revision } = reading
    if ('key' in query && 'holders' in reading) {
      const { claims, holders, count } = reading
      const keys = [{ key: query.key, claims, holders, count }]
      this.#observe({ type: 'keys', revision, keys, limit: query.limit ?? Infinity })
    } else if ('prefix' in query && 'keys' in reading) {
      const { prefix, after = '' } = query
      const { keys, more } = reading
      this.#observe({ type: 'prefix', revision, prefix, after, keys, more })
    } else if ('lease' in query && 'claims' in reading && query.limit === undefined) {
      this.#observe({ type: 'lease', revision, lease: query.lease, claims: reading.claims })
    } else if ('history' in query && 'tenures' in reading) {
      const { tenures } = reading
      this.#observe({ type: 'history', revision, key: query.history, tenures })
    }
  }

  #noticed(lease: LeaseId, notice: Notice): void {
    if (notice.type === 'gone') this.#harness.gone(lease, notice.end)
    else if (notice.type === 'standing') {
      this.#observe({ type: 'standing', revision: notice.revision, lease, claims: notice.claims })
    } else if (notice.type === 'holds') {
      this.#observe({ type: 'holds', revision: notice.revision, lease, token: notice.token })
    } else if (notice.type === 'removed') {
      const { revision, key, token } = notice
      this.#observe({ type: 'removed', revision, lease, key, token })
    }
  }

  #observe(observed: Observed): void {
    this.#harness.observed({ client: this.#client, ...observed } as Observation)
  }
}
