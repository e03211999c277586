import type { Key, Leasehold, Registration } from 'leasehold'
import {
  type Claim,
  type Clock,
  type Event,
  isLeaseholdError,
  LeaseholdError,
  type LeaseStore,
  type Random,
  show,
  type Watch,
} from 'leasehold/port'
import type { AgentHolds } from './agent-holds.ts'
import { ASKS_PREFIX, askBack } from './asks.ts'
import { watchChanges } from './change-watch.ts'
import { isoTime, noteOf, type Party, partyOf } from './hold-note.ts'
import { AGENTS_SERVICE, agentId, type NotedHold, notedHolds } from './noted-holds.ts'
import { type FilePath, keyOf, keysAbove } from './paths.ts'

const AGENTS_KEYS = `services/${AGENTS_SERVICE}/`
const PAGE = 1000
/** Keys that are read to list the agents. */
const KEYS_READ_MAX = 10_000
const SHOWN_MAX = 100
/** Names under which one connection announces itself. */
const NAMES_MAX = 100

/** What to look at: exactly one of these. */
export interface Target {
  readonly key?: string | undefined
  readonly path?: string | undefined
  readonly prefix?: string | undefined
}

export interface KeyView {
  readonly key: Key
  readonly holders: readonly Party[]
  readonly waiting: readonly Party[]
}

export interface PastHold {
  readonly holder: string
  readonly since: string
  readonly until: string
  readonly end: string
}

export interface AgentView {
  readonly agent: string
  readonly doing?: string | undefined
  readonly paths?: readonly string[] | undefined
  readonly capabilities?: readonly string[] | undefined
  readonly holds: readonly Party[]
  readonly waits: readonly Party[]
}

export interface Announcement {
  readonly agent?: string | undefined
  readonly doing: string
  readonly paths?: readonly string[] | undefined
  readonly capabilities?: readonly string[] | undefined
}

export interface FleetOptions {
  readonly leasehold: Leasehold
  readonly store: LeaseStore
  readonly random: Random
  readonly clock: Clock
}

/** What agents know and want of each other. */
export class Fleet {
  readonly #leasehold: Leasehold
  readonly #store: LeaseStore
  readonly #random: Random
  readonly #clock: Clock
  readonly #holds: AgentHolds
  readonly #registrations = new Map<string, Promise<Registration>>()
  readonly #capabilities = new Map<string, readonly string[]>()

  constructor({ leasehold, store, random, clock }: FleetOptions, holds: AgentHolds) {
    this.#leasehold = leasehold
    this.#store = store
    this.#random = random
    this.#clock = clock
    this.#holds = holds
  }

  /** Who holds and waits for it. For a path: also for a folder above it, or a file in it. */
  async who(target: Target): Promise<{ keys: KeyView[]; history: PastHold[]; more: boolean }> {
    const key = this.#keyOf(target)
    const { prefix } = target
    if (prefix !== undefined) return { ...(await this.#keysBelow(prefix)), history: [] }
    const claims = await this.#claimsOn(target)
    const { tenures } = await this.#store.read({ history: key })
    const history = tenures.map(({ holder, heldSince, endedAt, end }) => ({
      holder,
      since: isoTime(heldSince),
      until: isoTime(endedAt),
      end: [end.reason, end.by && `by ${end.by}`, end.why].filter(Boolean).join(', '),
    }))
    return { keys: [viewOf(key, claims)], history, more: false }
  }

  /** The first keys with this prefix, with their holders and queues. */
  async keys(prefix: string): Promise<KeyView[]> {
    return (await this.#keysBelow(prefix)).keys
  }

  watchKeys(prefix: string, changed: () => void): Watch {
    return this.#watch(prefix, changed)
  }

  watchAsks(changed: () => void): Watch {
    return this.#watch(ASKS_PREFIX, changed)
  }

  /** Watches what agents hold and announce; only the latter without the right to watch all keys. */
  watchAgents(changed: () => void): Watch {
    const isOfAgents = (event: Event) =>
      event.key.startsWith(AGENTS_KEYS) || noteOf(event) !== undefined
    const watches = [this.#watch('', changed, isOfAgents), this.#watch(AGENTS_KEYS, changed)]
    return { close: () => watches.forEach((watch) => void watch.close()) }
  }

  /** Withdraws everything that was announced. */
  async close(): Promise<void> {
    const registrations = [...this.#registrations.values()]
    this.#registrations.clear()
    await Promise.allSettled(registrations.map(async (each) => (await each).release()))
  }

  /** The capabilities that an agent announced. */
  capabilitiesOf(agent = this.#holds.agent): readonly string[] {
    return this.#capabilities.get(agent) ?? []
  }

  async announce({ agent = this.#holds.agent, doing, paths, capabilities }: Announcement) {
    const id = agentId(agent)
    const metadata = { doing, ...(paths && { paths: paths.join('\n').slice(0, 4000) }) }
    const known = this.#registrations.get(id)
    if (known === undefined && this.#registrations.size >= NAMES_MAX) {
      throw new LeaseholdError(
        'limit-exceeded',
        `this connection has announced ${NAMES_MAX} agents, the maximum: use the same name in every call`,
      )
    }
    const spec = { metadata, ...(capabilities && { capabilities }) }
    if (known !== undefined) await (await known).update(spec)
    else {
      const registering = this.#register(id, spec)
      this.#registrations.set(id, registering)
      await registering.catch((error) => {
        this.#registrations.delete(id)
        throw error
      })
    }
    if (capabilities !== undefined) this.#capabilities.set(agent, capabilities)
  }

  /** `more`: some holds are missing, because the store has more keys than were read. */
  async agents(): Promise<{ agents: AgentView[]; more: boolean }> {
    const found = await this.#leasehold.registry.find(AGENTS_SERVICE, { status: 'any' })
    const views = new Map<string, { -readonly [Name in keyof AgentView]: AgentView[Name] }>()
    for (const { id, capabilities, metadata } of found) {
      const paths = metadata['paths']?.split('\n')
      views.set(id, {
        agent: id,
        doing: metadata['doing'],
        paths,
        capabilities,
        holds: [],
        waits: [],
      })
    }
    const { holds, more } = await this.#noted()
    for (const { main, isHeld } of holds) {
      const party = partyOf(main)
      const name = agentId(party.agent)
      const view = views.get(name) ?? { agent: party.agent, holds: [], waits: [] }
      if (isHeld) view.holds = [...view.holds, party]
      else view.waits = [...view.waits, party]
      views.set(name, view)
    }
    return { agents: [...views.values()], more }
  }

  /** Asks all holders to give it back. Their agents see it with their next answer. */
  async askBack(target: Target, why: string, by = this.#holds.agent): Promise<Party[]> {
    const holding = await this.holdersOf(target)
    const asked: Party[] = []
    for (const claim of holding) {
      const ref = noteOf(claim)?.ref
      if (ref === undefined) continue
      await askBack(this.#store, this.#random, { ref, by, why })
      asked.push(partyOf(claim))
    }
    if (asked.length > 0) return asked
    throw new LeaseholdError(
      'claim-not-found',
      holding.length === 0
        ? `nobody holds ${nameOf(target)}: call acquire, it is free`
        : `${holding[0]!.holder} holds ${nameOf(target)} and is not an agent of this fleet, so it cannot be asked. Wait, or ask a person`,
    )
  }

  /** The claims that hold it now. For a path: also a folder above it, or files in it. */
  async holdersOf(target: Target): Promise<readonly Claim[]> {
    return (await this.#claimsOn(target)).filter((it) => it.heldSince !== undefined)
  }

  /** The claims that a break would end. */
  async breakable(target: Target): Promise<readonly Claim[]> {
    const holding = await this.holdersOf(target)
    if (holding.length > 0) return holding
    throw new LeaseholdError(
      'claim-not-found',
      `nobody holds ${nameOf(target)}: call acquire, it is free`,
    )
  }

  /** Other keys that end with these claims: a program may hold several things under one lease. */
  async alsoEnding(claims: readonly Claim[]): Promise<readonly Key[]> {
    const tokens = new Set(claims.map(({ lease, token }) => `${lease}/${token}`))
    const leases = [...new Set(claims.map(({ lease }) => lease))]
    const readings = await Promise.all(
      leases.map((lease) => this.#store.read({ lease, limit: SHOWN_MAX })),
    )
    const others = readings
      .flatMap((reading) => reading.claims)
      .filter(({ lease, token }) => !tokens.has(`${lease}/${token}`))
    return [...new Set(others.map(({ key }) => key))]
  }

  /** Gives the leases of these claims a last deadline. */
  async break(claims: readonly Claim[], by: string, why: string, after: number): Promise<void> {
    for (const lease of new Set(claims.map((claim) => claim.lease))) {
      await this.#store.revoke({ target: { lease }, by, why, after }).catch((error) => {
        // It has ended meanwhile, which is what was wanted.
        if (isLeaseholdError(error, 'lease-ended') || isLeaseholdError(error, 'lease-not-found'))
          return
        throw error
      })
    }
  }

  async #register(id: string, spec: object): Promise<Registration> {
    try {
      return await this.#leasehold.registry.register(AGENTS_SERVICE, {
        id,
        ...spec,
        wait: 0,
        onRevoked: 'return',
      })
    } catch (error) {
      if (!isLeaseholdError(error, 'timeout')) throw error
      throw new LeaseholdError(
        'invalid-argument',
        `another agent is called ${show(id)}: give 'agent' a name that only you have, such as ${show(`${id}-${this.#random.id().slice(0, 4)}`)}`,
      )
    }
  }

  #watch(prefix: string, changed: () => void, matters?: (event: Event) => boolean): Watch {
    return watchChanges({
      store: this.#store,
      clock: this.#clock,
      prefix,
      ...(matters && { matters }),
      changed,
    })
  }

  #keyOf({ key, path, prefix }: Target): Key {
    const given = [key, path, prefix].filter((it) => it !== undefined)
    if (given.length === 1) return path === undefined ? given[0]! : keyOf(this.#holds.fileOf(path))
    throw new LeaseholdError(
      'invalid-argument',
      "give one of key, such as 'deploy/staging', path, such as 'src/index.ts', or prefix, such as 'deploy/'",
    )
  }

  async #keysBelow(prefix: string): Promise<{ keys: KeyView[]; more: boolean }> {
    const { keys, more } = await this.#store.read({ prefix, limit: SHOWN_MAX })
    return { keys: keys.map(({ key, claims }) => viewOf(key, claims)), more }
  }

  /** The claims that exclude a holder of the target, the holding ones first; each hold once. */
  async #claimsOn(target: Target): Promise<readonly Claim[]> {
    const key = this.#keyOf(target)
    const { claims } = await this.#store.read({ key })
    const above =
      target.path === undefined ? [] : await this.#exclusiveAbove(this.#holds.fileOf(target.path))
    const seen = new Set<string>()
    return [...above, ...claims].filter((claim) => {
      const id = noteOf(claim)?.ref ?? `${claim.lease}/${claim.token}`
      return !seen.has(id) && seen.add(id)
    })
  }

  async #exclusiveAbove(file: FilePath): Promise<readonly Claim[]> {
    const readings = await Promise.all(keysAbove(file).map((key) => this.#store.read({ key })))
    return readings.flatMap(({ claims }) => claims.filter(({ mode }) => mode === 'exclusive'))
  }

  /** All holds of agents. Who may not read all keys sees only what is announced. */
  async #noted(): Promise<{ holds: NotedHold[]; more: boolean }> {
    const claims: Claim[] = []
    let after: Key | undefined
    let more = true
    for (let read = 0; more && read < KEYS_READ_MAX; read += PAGE) {
      const page = await this.#store.read({ prefix: '', limit: PAGE, after }).catch((error) => {
        if (isLeaseholdError(error, 'forbidden')) return { keys: [], more: false }
        throw error
      })
      for (const { claims: each } of page.keys) claims.push(...each)
      after = page.keys.at(-1)?.key
      more = page.more && after !== undefined
    }
    return { holds: notedHolds(claims), more }
  }
}

function viewOf(key: Key, claims: readonly Claim[]): KeyView {
  return {
    key,
    holders: claims.filter((claim) => claim.heldSince !== undefined).map(partyOf),
    waiting: claims.filter((claim) => claim.heldSince === undefined).map(partyOf),
  }
}

function nameOf({ key, path, prefix }: Target): string {
  return show(key ?? path ?? prefix)
}
