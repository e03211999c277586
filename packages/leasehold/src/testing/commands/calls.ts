import type {
  ClaimRequest,
  GrantRequest,
  Key,
  LeaseId,
  Query,
  ReleaseRequest,
  RevokeRequest,
  RevokeTarget,
  Token,
  UpdateRequest,
} from '../../port/index.ts'
import { type Command, KEYS, OLDEST, type Place, type Wrong } from './command.ts'

/** A command as the call of a store. */
export type Call =
  | { readonly method: 'grant'; readonly argument: GrantRequest }
  | { readonly method: 'claim'; readonly argument: ClaimRequest }
  | { readonly method: 'release'; readonly argument: ReleaseRequest }
  | { readonly method: 'update'; readonly argument: UpdateRequest }
  | { readonly method: 'revoke'; readonly argument: RevokeRequest }
  | { readonly method: 'renew'; readonly argument: readonly LeaseId[] }
  | { readonly method: 'read'; readonly argument: Query }
  | { readonly method: 'pass'; readonly argument: number }

const NOBODY: LeaseId = 'no-such-lease'

interface Made {
  readonly lease: LeaseId
  readonly keys: readonly Key[]
  readonly token: Token
}

/**
 * What was made this long ago. If there are fewer, one of those is used, so that most commands find
 * something; but the oldest may be something that never existed.
 */
export function madeAgo<T>(made: readonly T[], ago: number): T | undefined {
  return made.at(-1 - (ago < OLDEST ? ago % made.length : ago))
}

/** What one store has answered so far: it gives the names in commands their meaning. */
export class Names {
  readonly prefix: string
  readonly leases: LeaseId[] = []
  readonly claims: Made[] = []
  readonly sent: Call[] = []
  #requests = 0

  constructor(prefix: string) {
    this.prefix = prefix
  }

  /** The call that a command stands for on this store. */
  call(command: Command): Call {
    if (command.do === 'repeat') return this.#repeat(command.at)
    const call = this.#call(command)
    if ('request' in command && command.request) {
      const request = `${this.prefix}request-${this.#requests++}`
      const named = { ...call, argument: { ...(call.argument as object), request } } as Call
      this.sent.push(named)
      return named
    }
    return call
  }

  /** Learns from the answer to a call. */
  learn(call: Call, answer: object): void {
    if (call.method !== 'grant' && call.method !== 'claim') return
    const outcome = 'outcome' in answer ? answer.outcome : undefined
    if (outcome !== 'granted' && outcome !== 'claimed') return
    const { token } = answer as { token: Token }
    const lease =
      call.method === 'grant' ? (answer as { lease: LeaseId }).lease : call.argument.lease
    // The answer to a repeated request is not new.
    if (call.method === 'grant' && !this.leases.includes(lease)) this.leases.push(lease)
    const keys = (call.argument.claims ?? []).map(({ key }) => key)
    if (token > 0 && !this.claims.some((made) => made.token === token && made.lease === lease)) {
      this.claims.push({ lease, keys, token })
    }
  }

  #call(command: Exclude<Command, { do: 'repeat' }>): Call {
    switch (command.do) {
      case 'grant': {
        const { do: _, request: __, parent, claims, ...rest } = command
        const argument = {
          ...rest,
          parent: parent === undefined ? undefined : this.#lease(parent),
          claims: claims && this.#places(claims),
        }
        return { method: 'grant', argument }
      }
      case 'claim': {
        const claims = this.#places(command.claims)
        const argument = { lease: this.#lease(command.lease), claims, ifFree: command.ifFree }
        return { method: 'claim', argument }
      }
      case 'replace': {
        const { lease, keys, token } = this.#claim(command.claim, command.wrong)
        const { mode, value, some } = command
        const claims = keys.slice(0, some ? 1 : undefined).map((key) => ({ key, mode, value }))
        return { method: 'claim', argument: { lease, claims, replaces: token } }
      }
      case 'release': {
        const { lease, keys, token } = this.#claim(command.claim, command.wrong)
        const argument = { lease, keys: command.some ? keys.slice(0, 1) : keys, token }
        return { method: 'release', argument }
      }
      case 'update': {
        const { lease, keys, token } = this.#claim(command.claim, command.wrong)
        return { method: 'update', argument: { lease, key: keys[0]!, token, value: command.value } }
      }
      case 'revoke':
        return { method: 'revoke', argument: this.#revoke(command) }
      case 'renew':
        return { method: 'renew', argument: command.leases.map((ago) => this.#lease(ago)) }
      case 'pass':
        return { method: 'pass', argument: command.ms }
      case 'read':
        return { method: 'read', argument: this.#query(command) }
    }
  }

  #repeat(ago: number): Call {
    const call = this.sent.at(-1 - (ago % Math.max(this.sent.length, 1)))
    return call ?? { method: 'pass', argument: 0 }
  }

  #lease(ago: number): LeaseId {
    return madeAgo(this.leases, ago) ?? NOBODY
  }

  #claim(ago: number, wrong: Wrong | undefined): Made {
    const made = madeAgo(this.claims, ago) ?? {
      lease: NOBODY,
      keys: [this.#key(ago)],
      token: Number.MAX_SAFE_INTEGER,
    }
    if (wrong === 'lease') return { ...made, lease: this.#lease(ago + 1) }
    if (wrong === 'key') return { ...made, keys: [...new Set([...made.keys, this.#key(ago)])] }
    if (wrong !== 'token') return made
    return { ...made, token: this.claims.at(-2 - ago)?.token ?? Number.MAX_SAFE_INTEGER - 1 }
  }

  #key(at: number): Key {
    return this.prefix + KEYS[at % KEYS.length]!
  }

  #places(places: readonly Place[]): GrantRequest['claims'] & object {
    return places.map((place) => ({ ...place, key: this.prefix + place.key }))
  }

  #revoke(command: Extract<Command, { do: 'revoke' }>): RevokeRequest {
    const { target, at, after } = command
    const claim = this.#claim(at, undefined)
    const targets: Record<typeof target, RevokeTarget> = {
      lease: { lease: this.#lease(at) },
      parent: { parent: this.#lease(at) },
      prefix: { prefix: this.#key(at) },
      key: { key: this.#key(at) },
      claim: { key: claim.keys[0]!, token: claim.token },
    }
    const ofLeases = target === 'lease' || target === 'parent'
    return {
      target: targets[target],
      by: 'admin',
      why: `reason ${at}`,
      after: ofLeases ? after : undefined,
    }
  }

  #query({ what, at, limit }: Extract<Command, { do: 'read' }>): Query {
    if (what === 'key') return { key: this.#key(at), limit }
    if (what === 'prefix') return { prefix: this.#key(at).slice(0, -(at % 2) || undefined), limit }
    if (what === 'lease') return { lease: this.#lease(at) }
    if (what === 'leases') return { leases: true }
    return { history: this.#key(at) }
  }
}
