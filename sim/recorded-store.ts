import type {
  Busy,
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

  override async grant(request: GrantRequest): Promise<Granted | Busy> {
    // A repeated request may be answered for its first sending.
    const { request: id = '' } = request
    const sent = this.#firstSent.get(id) ?? this.#scene.world.now
    if (id) this.#firstSent.set(id, sent)
    const answer = await super.grant(request)
    if (answer.outcome === 'granted' && !this.#scene.leases.has(answer.lease)) {
      const { lease } = answer
      const { ttl, grace = 0 } = request
      this.#scene.leases.set(lease, { lease, ttl, grace, renewedFrom: sent, ended: false })
    }
    return answer
  }

  override async renew(leases: readonly LeaseId[]): Promise<Renewed> {
    const sent = this.#scene.world.now
    const answer = await super.renew(leases)
    const lost = new Set(answer.lost.map(({ lease }) => lease))
    for (const lease of leases) {
      const record = this.#scene.leases.get(lease)
      if (record && !lost.has(lease)) record.renewedFrom = Math.max(record.renewedFrom, sent)
    }
    for (const { lease, end } of answer.lost) this.#scene.gone(lease, end)
    return answer
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
