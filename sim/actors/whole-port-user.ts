import type {
  ClaimRequest,
  ClaimSpec,
  GrantRequest,
  Key,
  LeaseId,
  Query,
  RevokeTarget,
  Watch,
  WatchTarget,
} from 'leasehold/port'
import type { Harness } from '../world/harness.js'
import { PortUser } from './port-user.js'

const PREFIX = 'deal/'
const KEYS: readonly Key[] = ['deal/a', 'deal/b', 'deal/c', 'deal/d']
/** It remembers this many of the latest leases, claims and watches. */
const REMEMBERED = 6

interface KnownClaim {
  readonly lease: LeaseId
  readonly keys: readonly Key[]
  readonly token: number
}

/**
 * Uses the whole port: each method with every option, in no sensible order. This includes claims on
 * several keys of different modes and limits, replaced claims, child leases, breaks with a period, revocations by
 * lease, parent, key and prefix, stale tokens, and repeated requests. These users know each other's
 * leases, so one revokes what another waits for.
 */
export class WholePortUser extends PortUser {
  readonly #shared: SharedKnowledge
  #watches: Watch[] = []

  constructor(harness: Harness, name: string, table: SharedKnowledge) {
    super(harness, name, 400)
    this.#shared = table
  }

  protected forget(): void {
    this.#watches = []
  }

  override stop(): void {
    super.stop()
    for (const watch of this.#watches) watch.close()
  }

  protected step(): void {
    const { leases } = this.#shared
    const dice = this.random.next()
    if (leases.length === 0 || dice < 0.2) this.#grant()
    else if (dice < 0.38) this.#claim()
    else if (dice < 0.42) this.#replace()
    else if (dice < 0.58) this.#release()
    else if (dice < 0.7) this.#renew()
    else if (dice < 0.76) this.#update()
    else if (dice < 0.84) this.#revoke()
    else if (dice < 0.95) this.#read()
    else this.#watch({ prefix: PREFIX })
  }

  #grant(): void {
    const random = this.random
    const endless = random.chance(0.1)
    const parent = random.chance(0.35) ? this.#lease() : undefined
    const request: GrantRequest = {
      holder: this.node.name,
      ttl: endless ? Infinity : random.pick([300, 1000, 3000]),
      grace: random.pick([undefined, 0, 300]),
      maxLife: endless || random.chance(0.15) ? random.between(500, 4000) : undefined,
      parent,
      labels: random.chance(0.3) ? { team: 'sim' } : undefined,
      claims: random.chance(0.7) ? this.#claims() : undefined,
      ifFree: random.chance(0.3) ? true : undefined,
      request: this.#requestId(),
    }
    this.#send(request, async () => {
      const answer = await this.store.grant(request)
      if (answer.outcome === 'busy') return
      const { lease, token } = answer
      remember(this.#shared.leases, lease)
      const keys = request.claims?.map(({ key }) => key)
      if (keys) remember(this.#shared.claims, { lease, keys, token })
      if (random.chance(0.5)) this.#watch({ lease })
    })
  }

  #claim(): void {
    const ifFree = this.random.chance(0.3) ? true : undefined
    this.#sendClaim({ lease: this.#lease(), claims: this.#claims(), ifFree })
  }

  /** All keys of a claim or some; sometimes with an old token, which must change nothing. */
  #replace(): void {
    const random = this.random
    const dealt = this.#dealt()
    if (!dealt) return
    const { lease, token } = dealt
    const keys = dealt.keys.filter(() => random.chance(0.8))
    const claims = (keys.length > 0 ? keys : dealt.keys).map((key) => ({
      key,
      mode: random.chance(0.3) ? ('shared' as const) : undefined,
      value: `r${random.integer(1, 99)}`,
    }))
    const replaces = random.chance(0.1) ? Math.max(1, token - random.integer(-1, 3)) : token
    this.#sendClaim({ lease, claims, replaces })
  }

  #sendClaim(call: Omit<ClaimRequest, 'request'>): void {
    const request = { ...call, request: this.#requestId() }
    const { lease, claims } = request
    this.#send(request, async () => {
      const answer = await this.store.claim(request)
      if (answer.outcome === 'busy') return
      remember(this.#shared.claims, {
        lease,
        keys: claims.map(({ key }) => key),
        token: answer.token,
      })
    })
  }

  /** One to three keys in any order, with one mode for all or one for each. */
  #claims(): ClaimSpec[] {
    const random = this.random
    const keys = [...KEYS].sort(() => random.next() - 0.5)
    const shared = random.chance(0.6)
    return keys.slice(0, random.pick([1, 1, 2, 3])).map((key) => {
      const mode = random.chance(0.15) ? 'exclusive' : shared ? 'shared' : undefined
      return {
        key,
        mode,
        limit: mode === 'shared' && random.chance(0.5) ? random.integer(1, 4) : undefined,
        value: random.chance(0.3) ? `v${random.integer(1, 9)}` : undefined,
      }
    })
  }

  /**
   * All keys of a claim or some; sometimes with the token of another, which must change nothing.
   */
  #release(): void {
    const random = this.random
    const dealt = this.#dealt()
    if (!dealt) return
    const keys = dealt.keys.filter(() => random.chance(0.7))
    const token = random.chance(0.1) ? dealt.token - random.integer(-1, 3) : dealt.token
    const lease = random.chance(0.1) ? this.#lease() : dealt.lease
    const request = {
      lease,
      keys: keys.length > 0 ? keys : dealt.keys,
      token,
      request: this.#requestId(),
    }
    this.#send(request, () => this.store.release(request))
  }

  #renew(): void {
    const { leases } = this.#shared
    const some = leases.filter(() => this.random.chance(0.6))
    this.store.renew([...some, this.#lease()]).catch(() => undefined)
  }

  #update(): void {
    const random = this.random
    const dealt = this.#dealt()
    if (!dealt) return
    const token = random.chance(0.2) ? dealt.token - 1 : dealt.token
    const value = random.chance(0.2) ? undefined : `u${random.integer(1, 99)}`
    const { lease } = dealt
    const request = {
      lease,
      key: random.pick(dealt.keys),
      token,
      value,
      request: this.#requestId(),
    }
    this.#send(request, () => this.store.update(request))
  }

  #revoke(): void {
    const random = this.random
    const target = this.#target()
    const isLease = 'lease' in target || 'parent' in target
    const request = {
      target,
      by: this.node.name,
      why: `reason ${this.#shared.reasons++}`,
      after: isLease && random.chance(0.6) ? random.between(10, 2500) : undefined,
      request: this.#requestId(),
    }
    this.#send(request, () => this.store.revoke(request))
  }

  #target(): RevokeTarget {
    const random = this.random
    const dealt = this.#dealt()
    const dice = random.next()
    if (dice < 0.4 || !dealt) return { lease: this.#lease() }
    if (dice < 0.55) return { parent: this.#lease() }
    if (dice < 0.65) return { prefix: random.pick([PREFIX, 'deal/a']) }
    const key = random.pick(dealt.keys)
    return dice < 0.75 ? { key } : { key, token: dealt.token }
  }

  #read(): void {
    const random = this.random
    const key = random.pick(KEYS)
    const limit = random.chance(0.3) ? random.integer(1, 2) : undefined
    const query: Query = random.pick<Query>([
      { key, limit },
      { key },
      { prefix: PREFIX, after: random.chance(0.3) ? key : undefined, limit },
      { lease: this.#lease(), limit },
      { leases: true, limit },
      { leases: true, after: this.#lease(), limit: 3 },
      { history: key },
    ])
    this.store.read(query).catch(() => undefined)
  }

  /** Watches. If a fault ends the watch, it resumes from its last revision. */
  #watch(target: WatchTarget): void {
    const watch = this.store.watch(target, (notice) => {
      if (notice.type === 'events' && 'prefix' in target) from = notice.revision
      if (notice.type !== 'interrupted' || this.isStopping) return
      const next = 'lease' in target ? target : { ...target, from }
      this.later(this.random.between(10, 400), () => this.#watch(next))
    })
    let from = 'prefix' in target ? target.from : undefined
    this.#watches.push(watch)
    if (this.#watches.length > REMEMBERED) this.#watches.shift()!.close()
  }

  /** Sends a call, sometimes twice if it has a request id. */
  #send(request: { readonly request?: string | undefined }, ask: () => Promise<unknown>): void {
    const send = (): void => {
      ask().catch(() => undefined)
    }
    send()
    if (request.request !== undefined && this.random.chance(0.3)) {
      this.later(this.random.between(1, 2000), send)
    }
  }

  #lease(): LeaseId {
    return this.random.pick(this.#shared.leases)
  }

  #dealt(): KnownClaim | undefined {
    const { claims } = this.#shared
    return claims.length === 0 ? undefined : this.random.pick(claims)
  }

  #requestId(): string | undefined {
    return this.random.chance(0.7) ? this.random.id() : undefined
  }
}

/** What these users know of each other. */
export class SharedKnowledge {
  readonly leases: LeaseId[] = []
  readonly claims: KnownClaim[] = []
  reasons = 1
}

function remember<Entry>(list: Entry[], entry: Entry): void {
  list.push(entry)
  if (list.length > REMEMBERED) list.shift()
}
