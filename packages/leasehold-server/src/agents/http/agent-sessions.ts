import { Leasehold } from 'leasehold'
import {
  type Clock,
  delegate,
  LeaseholdError,
  type LeaseStore,
  type Random,
  type Timer,
} from 'leasehold/port'
import type { Access, Admission, Credentials, Principal } from '../../access/index.ts'
import { AgentHolds } from '../agent-holds.ts'
import type { AgentSession, Caller } from '../agent-session.ts'
import { DEFAULT_CEILINGS } from '../ceilings.ts'
import { Fleet } from '../fleet.ts'

/** Everything of an agent is released if it calls no tool for this long, unless it asks for more. */
export const HTTP_IDLE_MS = 10 * 60_000
/** After the last stream of an agent has closed, it has this long to call again. */
const AFTER_STREAM_MS = 60_000
/** A session without holds is kept for this long, so that `mine` can say what was lost. */
const KEPT_MS = 3_600_000
const LOOK_EVERY_MS = 15_000
/** Sessions of one server. */
const SESSIONS_MAX = 10_000

export interface AgentSessionsOptions {
  readonly access: Access
  readonly clock: Clock
  readonly random: Random
}

/** Who an agent is over HTTP, and how it wants to be treated. */
export interface AgentIdentity {
  readonly credentials: Credentials
  readonly principal: Principal
  /** Its name in the URL, or the id of its protocol session. */
  readonly name?: string | undefined
  /** The name that others see, if it is not `name`. */
  readonly shown?: string | undefined
  readonly repository?: string | undefined
  readonly idle?: number | undefined
}

/**
 * The agents that use `/mcp`. There is no process whose end would end their holds, so this server
 * renews for them, and stops when an agent has been silent for the idle limit. An open stream counts
 * as a call. Each agent has the rights of its access token, and loses everything when that ends.
 */
export class AgentSessions {
  readonly #access: Access
  readonly #clock: Clock
  readonly #random: Random
  readonly #sessions = new Map<string, HttpSession>()
  #timer: Timer | undefined
  #isClosed = false

  constructor({ access, clock, random }: AgentSessionsOptions) {
    this.#access = access
    this.#clock = clock
    this.#random = random
  }

  /** Agents that hold or wait for something, or have a stream open. */
  get active(): number {
    return [...this.#sessions.values()].filter((session) => session.isActive).length
  }

  /** The session of a caller; made if it is new. */
  async of(identity: AgentIdentity, { agent, hold, reads }: Caller): Promise<AgentSession> {
    const { principal, name } = identity
    if (hold !== undefined) return this.#withHold(principal, hold).ready
    if (name !== undefined) return this.#open(identity, name)
    if (agent !== undefined) return this.#open({ ...identity, shown: agent }, `agent ${agent}`)
    if (reads) return this.#open({ ...identity, shown: principal.name }, '')
    throw new LeaseholdError(
      'invalid-argument',
      "give 'agent': a name that only you have, such as 'ada-7', and the same one in every call. Over HTTP nothing else tells you from the other agents",
    )
  }

  /** A stream of this agent is open, until the returned function is called. */
  async streamOf(identity: AgentIdentity): Promise<() => void> {
    const { name } = identity
    if (name === undefined) return () => {}
    await this.#open(identity, name)
    return this.#sessions.get(keyOf(identity.principal, name))?.stream() ?? (() => {})
  }

  /** The agent has left: everything of it is released. */
  async end({ principal, name = '' }: AgentIdentity): Promise<void> {
    await this.#drop(keyOf(principal, name))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    await Promise.all([...this.#sessions.keys()].map((key) => this.#drop(key)))
  }

  #open(identity: AgentIdentity, name: string): Promise<AgentSession> {
    if (this.#isClosed) throw new LeaseholdError('closed', 'the server is stopping; ask again')
    const key = keyOf(identity.principal, name)
    const known = this.#sessions.get(key)
    if (known !== undefined) return known.ready
    this.#makeRoom()
    const admission = this.#access.admit(identity.credentials)
    const session = new HttpSession(identity, name, admission, this.#clock, this.#random)
    this.#sessions.set(key, session)
    admission.ended = () => void this.#drop(key)
    session.ready.catch(() => this.#drop(key))
    this.#look()
    return session.ready
  }

  #withHold(principal: Principal, hold: string): HttpSession {
    for (const session of this.#sessions.values()) {
      if (session.principal === principal && session.holds?.has(hold)) return session
    }
    throw new LeaseholdError(
      'invalid-argument',
      `hold is "${hold}": this server has no such hold of yours. Call mine. If it is not there, it was released or the server was restarted: take it again before you continue`,
    )
  }

  #makeRoom(): void {
    if (this.#sessions.size < SESSIONS_MAX) return
    for (const [key, session] of this.#sessions) {
      if (session.isActive) continue
      void this.#drop(key)
      return
    }
    throw new LeaseholdError(
      'limit-exceeded',
      `${SESSIONS_MAX} agents hold something through this server, the maximum: ask again later`,
    )
  }

  #look(): void {
    this.#timer ??= this.#clock.timer(this.#clock.now() + LOOK_EVERY_MS, () => {
      this.#timer = undefined
      for (const [key, session] of this.#sessions) {
        if (session.look(this.#clock.now()) === 'over') void this.#drop(key)
      }
      if (this.#sessions.size > 0 && !this.#isClosed) this.#look()
    })
  }

  async #drop(key: string): Promise<void> {
    const session = this.#sessions.get(key)
    this.#sessions.delete(key)
    await session?.close()
  }
}

class HttpSession {
  readonly principal: Principal
  readonly ready: Promise<AgentSession>
  holds: AgentHolds | undefined
  #fleet: Fleet | undefined
  #leasehold: Leasehold | undefined
  readonly #admission: Admission
  #streams = 0
  #isIdle = false

  constructor(
    { principal, shown, repository, idle = HTTP_IDLE_MS }: AgentIdentity,
    name: string,
    admission: Admission,
    clock: Clock,
    random: Random,
  ) {
    this.principal = principal
    this.#admission = admission
    this.ready = this.#open({ agent: shown ?? name, repository, idle }, clock, random)
  }

  get isActive(): boolean {
    return this.#streams > 0 || (this.holds?.openCount ?? 1) > 0
  }

  stream(): () => void {
    let isOpen = true
    this.#streams++
    this.holds?.touch()
    return () => {
      if (!isOpen) return
      isOpen = false
      if (--this.#streams === 0) this.holds?.expectSilence(AFTER_STREAM_MS)
    }
  }

  /** Called now and then: an idle agent leaves the fleet, and is forgotten later. */
  look(now: number): 'over' | 'kept' {
    const { holds } = this
    if (holds === undefined) return 'kept'
    if (this.#streams > 0) holds.touch()
    const silent = now - holds.lastCall
    const isIdle = silent >= holds.ceilings.idle
    if (isIdle && !this.#isIdle) void this.#fleet?.close()
    this.#isIdle = isIdle
    return isIdle && silent >= KEPT_MS && !this.isActive ? 'over' : 'kept'
  }

  async close(): Promise<void> {
    await this.ready.catch(() => {})
    await this.holds?.close().catch(() => {})
    await this.#leasehold?.close().catch(() => {})
    this.#admission.leave()
  }

  async #open(
    { agent, repository, idle }: { agent: string; repository: string | undefined; idle: number },
    clock: Clock,
    random: Random,
  ): Promise<AgentSession> {
    const store = releasingStore(this.#admission)
    const leasehold = await Leasehold.open(store, { holder: agent, clock, random })
    const ceilings = { ...DEFAULT_CEILINGS, idle }
    const given = { leasehold, store, clock, random }
    this.#leasehold = leasehold
    this.holds = new AgentHolds({ ...given, agent, paths: { repository }, ceilings })
    this.#fleet = new Fleet(given, this.holds)
    return { holds: this.holds, fleet: this.#fleet }
  }
}

/** The caller's store. What was taken can be released even if its access token has ended. */
function releasingStore({ store, serverActions, principal }: Admission): LeaseStore {
  const releaser = () => (principal.ended === undefined ? store : serverActions)
  return delegate(store, {
    revoke: (request) => releaser().revoke(request),
    release: (request) => releaser().release(request),
    close: async () => {},
  })
}

function keyOf({ name }: Principal, agent: string): string {
  return `${name}\0${agent}`
}
