import { createHash } from 'node:crypto'
import {
  type Claim,
  isLeaseholdError,
  type LeaseId,
  type LeaseStore,
  type Random,
  type Revision,
} from 'leasehold/port'
import { ConsulError, decodeFailed } from './answer.ts'
import { givenDuration, goDuration } from './durations.ts'
import { SESSION } from './names.ts'
import { readAll } from './read-all.ts'

export interface Session {
  readonly id: string
  readonly name: string
  readonly node: string
  /** As the client wrote it; empty for a session without one. */
  readonly ttl: string
  /** In milliseconds. */
  readonly lockDelay: number
  readonly behavior: 'release' | 'delete'
  readonly nodeChecks: readonly string[]
  readonly index: Revision
  readonly lease: LeaseId
}

type Stored = Omit<Session, 'id' | 'index' | 'lease'>

const TTL_MIN_MS = 10_000
const TTL_MAX_MS = 86_400_000
const LOCK_DELAY_MS = 15_000
const LOCK_DELAY_MAX_MS = 60_000

/**
 * Consul's sessions on a lease store. A session is a lease with a claim on its id. Like Consul's, it
 * ends between one and two ttl after the last renewal, so its grace is its ttl.
 */
export class Sessions {
  readonly #store: LeaseStore
  readonly #random: Random
  readonly #node: string

  constructor(store: LeaseStore, random: Random, node: string) {
    this.#store = store
    this.#random = random
    this.#node = node
  }

  async create(body: Readonly<Record<string, unknown>>): Promise<string> {
    const { ttl, ms } = ttlOf(body['ttl'])
    const lockDelay = lockDelayOf(body['lockdelay'])
    const node = typeof body['node'] === 'string' && body['node'] ? body['node'] : this.#node
    if (node !== this.#node) throw new ConsulError(500, 'apply failed: Missing node registration')
    const id = uuidOf(this.#random.id())
    const name = body['name'] ?? ''
    if (typeof name !== 'string') throw decodeFailed('Name must be a string')
    const grace = ms === Infinity ? 0 : ms
    const stored: Stored = {
      ...{ name, node, ttl, lockDelay },
      behavior: behaviorOf(body['behavior']),
      nodeChecks: checksOf(body['nodechecks'] ?? body['checks']),
    }
    const claims = [{ key: `${SESSION}${id}`, value: JSON.stringify(stored) }]
    await this.#store.grant({ holder: `consul-session:${id}`, ttl: ms, grace, claims })
    return id
  }

  async get(id: string): Promise<Session | undefined> {
    return (await this.read(id)).session
  }

  async read(
    id: string,
  ): Promise<{ readonly session: Session | undefined; readonly revision: Revision }> {
    const { claims, revision } = await this.#store.read({ key: `${SESSION}${id}`, limit: 1 })
    return { session: claims[0] && sessionIn(claims[0]), revision }
  }

  async list(): Promise<readonly Session[]> {
    const keys = await readAll(this.#store, SESSION)
    return keys.flatMap(({ claims: [claim] }) => (claim && sessionIn(claim)) ?? [])
  }

  /** Returns `undefined` if the session has ended. */
  async renew(id: string): Promise<Session | undefined> {
    const session = await this.get(id)
    if (session === undefined) return undefined
    const { lost } = await this.#store.renew([session.lease])
    return lost.length > 0 ? undefined : session
  }

  async destroy(id: string): Promise<void> {
    const session = await this.get(id)
    if (session === undefined) return
    const revoking = this.#store.revoke({ target: { lease: session.lease }, by: 'consul-session' })
    await revoking.catch((error: unknown) => {
      const isGone =
        isLeaseholdError(error, 'lease-ended') || isLeaseholdError(error, 'lease-not-found')
      if (!isGone) throw error
    })
  }
}

/** `undefined` if something else has claimed this key. */
export function sessionIn({
  key,
  token,
  lease,
  value = '',
}: Pick<Claim, 'key' | 'token' | 'lease' | 'value'>): Session | undefined {
  try {
    return { ...(JSON.parse(value) as Stored), id: key.slice(SESSION.length), index: token, lease }
  } catch {
    return undefined
  }
}

function ttlOf(given: unknown): { readonly ttl: string; readonly ms: number } {
  if (given === undefined || given === null || given === '') return { ttl: '', ms: Infinity }
  const ttl = String(given)
  const ms = goDuration(ttl)
  if (ms === undefined) {
    throw new ConsulError(500, `Session TTL '${ttl}' invalid: time: invalid duration "${ttl}"`)
  }
  if (ms === 0) return { ttl, ms: Infinity }
  if (ms < TTL_MIN_MS || ms > TTL_MAX_MS) {
    const range = '[10s=24h0m0s]'
    throw new ConsulError(500, `Invalid Session TTL '${ms * 1e6}', must be between ${range}`)
  }
  return { ttl, ms }
}

function lockDelayOf(given: unknown): number {
  const ms = given === undefined || given === null ? LOCK_DELAY_MS : givenDuration(given)
  if (ms === undefined) throw decodeFailed(`time: invalid duration "${String(given)}"`)
  return Math.min(Math.max(ms, 0), LOCK_DELAY_MAX_MS)
}

function behaviorOf(given: unknown): 'release' | 'delete' {
  if (given === undefined || given === null || given === '') return 'release'
  if (given === 'release' || given === 'delete') return given
  throw new ConsulError(500, `Invalid Behavior setting '${String(given)}'`)
}

function checksOf(given: unknown): readonly string[] {
  return Array.isArray(given) ? given.map(String) : ['serfHealth']
}

function uuidOf(id: string): string {
  const hex = createHash('sha256').update(id).digest('hex')
  const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20)]
  return [...parts, hex.slice(20, 32)].join('-')
}
