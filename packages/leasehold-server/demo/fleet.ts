import { Agent, type DemoOptions } from './agent.ts'
import { CODERS, REPOSITORY, startCoding } from './coding-agents.ts'

/** The demo uses only these key prefixes and holder names. */
export const HOLDER = 'demo:'
export const PREFIXES = [
  'demo/',
  'services/demo-',
  'nodes/demo-',
  'election/demo-',
  'pool/demo-',
  'session/demo/',
  'adaptive/demo-',
  `services/agents/${HOLDER}`,
  `repo/${REPOSITORY}`,
  'agents/asks/',
] as const

const SERVICE = 'demo-embedder'
const POOL = 'demo-gpu'
const ELECTION = 'demo-scheduler'
const WORKERS = ['ada', 'bo', 'cy', 'dot', 'eve', 'fay', 'gus', 'hal'] as const
const CANDIDATES = ['north', 'south', 'west'] as const
const NAMES = [...WORKERS, ...CANDIDATES, ...CODERS] as const
type Name = (typeof NAMES)[number]
const USERS = ['demo:ada', 'demo:bo', 'demo:cy', 'demo:dot'] as const
const REPORTS = ['demo/reports/daily', 'demo/reports/weekly', 'demo/index/build'] as const
const ZONES = ['a', 'b', 'c'] as const
const TENANTS = { research: { weight: 2 }, vision: { weight: 1 }, night: { weight: 1 } }
const KINDS: Readonly<Record<string, { readonly tenant: string; readonly ms: number }>> = {
  finetune: { tenant: 'research', ms: 9000 },
  embed: { tenant: 'vision', ms: 3500 },
  batch: { tenant: 'night', ms: 6000 },
}
const RESOURCES = [0, 1, 2, 3, 4, 5].map((at) => ({
  name: `${at < 4 ? 'a100' : 'h100'}-${at}`,
  model: at < 4 ? 'A100' : 'H100',
  memory: at < 4 ? 40 : 80,
}))

/** Short, so that expiry is visible. */
const TTL = '6s'
const GRACE = '3s'
const DEATH_EVERY_MS = 14_000

/**
 * A small fleet: workers that register, queue for GPUs and locks, fail health checks and die;
 * candidates that elect a leader; coding agents on one repository; and users with sessions. Everything happens faster than in reality.
 */
export class Fleet {
  readonly #options: DemoOptions
  readonly #agents = new Map<string, Agent>()
  #reaper: Agent | undefined
  #isOver = false

  constructor(options: DemoOptions) {
    this.#options = options
  }

  async begin(): Promise<void> {
    this.#reaper = await Agent.begin(this.#options, `${HOLDER}stage`)
    const reaper = this.#reaper
    for (const name of NAMES) await this.#addAgent(name)
    await this.#addUsers(reaper)
    reaper.work(() => this.#reap(reaper))
  }

  async end(): Promise<void> {
    this.#isOver = true
    const all = [...this.#agents.values(), ...(this.#reaper ? [this.#reaper] : [])]
    await Promise.all(all.map((agent) => agent.end()))
  }

  /** Adds the agent to the fleet before it does anything, so that the fleet always ends it. */
  async #addAgent(name: Name): Promise<void> {
    if (this.#isOver) return
    const agent = await Agent.begin(this.#options, HOLDER + name)
    if (this.#isOver) return agent.end()
    this.#agents.set(name, agent)
    const worker = (WORKERS as readonly string[]).indexOf(name)
    const coder = (CODERS as readonly string[]).indexOf(name)
    if (worker >= 0) await this.#worker(agent, name, worker)
    else if (coder >= 0) this.#coder(agent, name, coder)
    else this.#candidate(agent, name, (CANDIDATES as readonly string[]).indexOf(name))
  }

  /** Kills a random agent from time to time, and restarts it later. */
  async #reap(reaper: Agent): Promise<void> {
    await reaper.pause(reaper.between(0.6 * DEATH_EVERY_MS, 1.4 * DEATH_EVERY_MS))
    if (reaper.signal.aborted) return
    const name = reaper.one(NAMES)
    const victim = this.#agents.get(name)
    if (victim === undefined) return
    victim.kill()
    this.#agents.delete(name)
    await reaper.pause(reaper.between(4000, 12_000))
    await this.#addAgent(name)
  }

  async #worker(agent: Agent, name: string, at: number): Promise<void> {
    const { leasehold, signal } = agent
    const life = { ttl: TTL, grace: GRACE, signal } as const
    const options = {
      ...life,
      id: `i-${name}`,
      address: `10.0.0.${at + 1}:8080`,
      zone: ZONES[at % ZONES.length]!,
      capabilities: at % 2 === 0 ? ['embed', 'rerank'] : ['embed'],
      metadata: { model: at % 3 === 0 ? 'large' : 'small' },
    } as const
    // Some instances run on their own node and end with it.
    const node = at % 4 === 0 ? await leasehold.registry.node(`demo-${name}`, life) : undefined
    const registration = await (node ?? leasehold.registry).register(SERVICE, options)
    agent.work(async () => {
      registration.reportLoad(Math.round(agent.between(0, 100)))
      await agent.pause(2000)
    })
    agent.work(async () => {
      await registration.report('passing')
      await agent.pause(agent.between(15_000, 90_000))
      const isCritical = agent.between(0, 1) < 0.5
      await registration.report(
        isCritical ? 'critical' : 'warning',
        isCritical ? 'out of memory' : 'slow disk',
      )
      await agent.pause(agent.between(6000, 12_000))
    })
    agent.work(() => this.#job(agent))
    agent.work(() => this.#report(agent))
  }

  #coder(agent: Agent, name: string, at: number): void {
    const { leasehold, store } = agent
    const open = this.#options.openCodingAgent
    startCoding(agent, open(leasehold, store, HOLDER + name, REPOSITORY), at)
  }

  async #job(agent: Agent): Promise<void> {
    const kind = agent.one(Object.keys(KINDS))
    const { tenant, ms } = KINDS[kind]!
    const pool = agent.leasehold.pool(POOL, { resources: RESOURCES, tenants: TENANTS })
    const { signal } = agent
    const options = { tenant, kind: `demo-${kind}`, ttl: 'adaptive', wait: '5m', signal } as const
    await using permit = await pool.take({ ...options, priority: agent.one([0, 0, 1]) })
    await agent.pause(agent.between(0.5 * ms, 1.6 * ms))
    if (permit.signal.aborted) return
  }

  async #report(agent: Agent): Promise<void> {
    await agent.pause(agent.between(500, 4000))
    const { signal } = agent
    const options = { ttl: TTL, grace: GRACE, wait: '5m', signal } as const
    await using _lock = await agent.leasehold.lock(agent.one(REPORTS), options)
    await agent.pause(agent.between(1000, 4000))
  }

  #candidate(agent: Agent, name: string, at: number): void {
    const { signal } = agent
    const value = `10.0.1.${at + 1}:9000`
    const election = agent.leasehold.election(ELECTION, { candidate: name, value, ttl: TTL })
    agent.work(async () => {
      for await (const term of election.lead({ signal })) {
        await agent.pause(agent.between(15_000, 40_000))
        if (term.leading) await term.resign()
      }
    })
  }

  async #addUsers(stage: Agent): Promise<void> {
    const sessions = stage.leasehold.sessions('demo', { ttl: '90s', max: '10m' })
    for (const user of USERS) {
      stage.work(async () => {
        const session = await sessions.create({ user, data: { cart: ['book'] } })
        for (let visit = 0; visit < 20 && !stage.signal.aborted; visit++) {
          await stage.pause(stage.between(3000, 20_000))
          await session.touch()
        }
        if (!stage.signal.aborted) await session.end('logged out')
      })
    }
  }
}
