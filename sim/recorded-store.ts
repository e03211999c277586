import type {
  Busy,
  Claimed,
  ClaimRequest,
  Granted,
  GrantRequest,
  Guarantees,
  LeaseId,
  Observer,
  Renewed,
  Revoked,
  RevokeRequest,
  Watch,
  WatchTarget,
} from 'leasehold/port'
import { type SimNode, type SimServer, SimStore } from 'leasehold/testing'
import type { LeaseRecord } from './history.js'
import type { Scene } from './scene.js'

/**
 * The store as a client sees it, which notes what the client is told: when the renewals were sent
 * that were answered, and that leases are gone.
 */
export class RecordedStore extends SimStore {
  readonly #scene: Scene
  readonly #firstSent = new Map<string, number>()

  constructor(scene: Scene, client: SimNode, server: SimServer, guarantees: Guarantees) {
    super(client, server, guarantees)
    this.#scene = scene
  }

  override grant(request: GrantRequest): Promise<Granted | Busy> {
    // A repeated request may be answered for its first sending.
    const { request: id = '' } = request
    const sent = this.#firstSent.get(id) ?? this.#scene.world.now
    if (id) this.#firstSent.set(id, sent)
    return super.grant(request).then((answer) => {
      if (answer.outcome === 'granted' && !this.#scene.leases.has(answer.lease)) {
        const { lease } = answer
        const { ttl, grace = 0, claims } = request
        const claimed = claims !== undefined && claims.length > 0
        const record = { lease, ttl, grace, renewedFrom: sent, claimed, ended: false }
        this.#scene.leases.set(lease, record)
      }
      return answer
    })
  }

  override renew(leases: readonly LeaseId[]): Promise<Renewed> {
    const scene = this.#scene
    const sent = scene.world.now
    const known = leases.map((lease) => scene.leases.get(lease)?.renewedFrom ?? -Infinity)
    return super.renew(leases).then((answer) => {
      for (let at = 0; at < leases.length; at++) {
        const id = leases[at]!
        const lease = scene.leases.get(id)
        if (!lease) continue
        const loss = answer.lost.find((one) => one.lease === id)
        const end = loss?.end
        scene.renewed({ lease, sent, knownAtSending: known[at]!, lost: loss !== undefined, end })
        if (loss) scene.gone(id, end)
        else lease.renewedFrom = Math.max(lease.renewedFrom, sent)
      }
      return answer
    })
  }

  override claim(request: ClaimRequest): Promise<Claimed | Busy> {
    const record = this.#scene.leases.get(request.lease)
    if (record) record.claimed = true
    return super.claim(request)
  }

  override revoke(request: RevokeRequest): Promise<Revoked> {
    if ('lease' in request.target) this.#ending(request.target.lease)
    return super.revoke(request)
  }

  override watch(target: WatchTarget, observer: Observer): Watch {
    return super.watch(target, (notice) => {
      if (notice.type === 'gone' && 'lease' in target) this.#scene.gone(target.lease, notice.end)
      observer(notice)
    })
  }

  #ending(lease: LeaseId): void {
    const record: LeaseRecord | undefined = this.#scene.leases.get(lease)
    if (record) record.ended = true
  }
}
