import { isLeaseholdError } from 'leasehold'
import type { End, Event, Guarantees, LeaseId, LeaseStore, RevokeRequest } from 'leasehold/port'
import { Network, SimDisk, type SimNode, type SimServer, SimStore, World } from 'leasehold/testing'
import { drawSetup, type WorldSetup, type Worlds } from '../actors/actors.js'
import type {
  Checker,
  KeyRead,
  LeaseRead,
  LossRecord,
  Renewal,
  Truth,
  Violation,
} from '../checkers/checker.js'
import type {
  Call,
  Family,
  ForcedEnd,
  Holding,
  LeaseRecord,
  Step,
  WatchRecord,
  Write,
} from '../checkers/history.js'
import { checkers } from '../checkers/index.js'
import type { Observation } from '../checkers/observation.js'
import { exercised } from '../coverage.js'
import { drawFaults, type Faults, longestDelay } from '../faults/faults.js'
import { RecordedStore } from './recorded-store.js'
import { ServerGroup } from './server-group.js'
import { LIMITS, openServerStore } from './server-store.js'
import { ServerWatch } from './server-watch.js'
import { StreamTransport } from './stream-transport.js'

/**
 * One world with its servers, clients and checkers. Actors report here what they receive; the harness
 * passes it on to the checkers.
 */
export class Harness {
  readonly world: World
  readonly faults: Faults
  readonly setup: WorldSetup
  readonly network: Network
  readonly servers: ServerGroup
  readonly disk: SimDisk
  readonly violations: Violation[] = []
  /** How many times a client held something. */
  held = 0
  /** How long after the expiry of a dead holder's lease the next one held. */
  lateness = -Infinity
  readonly calls: Call[] = []
  readonly watches: WatchRecord[] = []
  readonly families: Family[] = []
  announced = 0
  readonly leases = new Map<LeaseId, LeaseRecord>()
  readonly observations: Observation[] = []
  readonly steps: Step[] = []
  readonly forcedEnds: ForcedEnd[] = []
  readonly holdings: Holding[] = []
  /** How each claim ended that did, by its key and token. */
  readonly ends = new Map<string, End>()
  readonly #gone = new Set<LeaseId>()
  readonly #serverWatch: ServerWatch
  readonly #transport: StreamTransport | undefined
  #streams = 0
  readonly #checkers: readonly Checker[]
  readonly #truth: { -readonly [K in keyof Truth]: Truth[K] }
  /** Holders that may still believe that they hold. */
  #holdings: Holding[] = []
  #guarantees: Guarantees | undefined
  #calm = false

  constructor(seed: number, trace: boolean, worlds: Worlds = 'server') {
    const world = new World(seed, { trace })
    this.world = world
    this.faults = drawFaults(world.random.fork())
    this.setup = drawSetup(world.random.fork(), worlds)
    this.network = new Network(world, this.faults.link)
    const { drift, link } = this.faults
    this.servers = new ServerGroup(world, this.network, this.setup, () => this.rate())
    this.#truth = {
      now: 0,
      serverRate: this.servers.fastest,
      slowestRate: this.servers.slowest,
      serverStart: 0,
      prolonged: 0,
      lag: (since) => this.servers.lag.since(since),
      serverEnd: 0,
      drift,
      // How long an entry may be on its way into a log is not bounded: appends are lost and repeated.
      delay: this.setup.store === 'log' ? Infinity : longestDelay(link),
    }
    const { node } = this.servers.first
    this.disk = new SimDisk(node, this.faults.disk)
    this.#transport =
      this.setup.transport === 'stream'
        ? new StreamTransport(this.network, node, LIMITS)
        : undefined
    this.#serverWatch = new ServerWatch({
      received: (events) => this.#received(events),
      disagreed: (revision, one, other) =>
        this.#violated('replicas agree', `revision ${revision}: ${one} and ${other}`),
      resumed: (revision, events) => this.steps.push({ revision, events, isFullRead: true }),
      later: (run) => void this.world.after(50, run),
    })
    this.#checkers = checkers((checker, message) => this.#violated(checker, message), this)
  }

  get truth(): Truth {
    this.#truth.now = this.world.now
    return this.#truth
  }

  /** How much faster the server's clock may run than a client's: what clients must allow for. */
  get driftBound(): number {
    const { drift } = this.faults
    return 1 - (1 - drift) / (1 + drift)
  }

  /** Half of all clocks run at one of the two limits, where a margin would be too small. */
  rate(): number {
    const { random } = this.world
    const extent = random.chance(0.5) ? random.pick([-1, 1]) : random.between(-1, 1)
    return 1 + extent * this.faults.drift
  }

  client(name: string): SimNode {
    const { random } = this.world
    return this.world.node(name, { rate: this.rate(), offset: random.between(0, 1e6) })
  }

  /** The store as a client sees it. Every lease that it is granted and renewed is recorded. */
  store(client: SimNode): LeaseStore {
    const remote = new SimStore(client, this.servers.of(client), this.#guarantees!)
    return new RecordedStore(this, client.name, remote)
  }

  /** The store of a locker: over a real stream if the world has one. */
  async connect(client: SimNode): Promise<LeaseStore> {
    if (!this.#transport) return this.store(client)
    const { random } = client
    const tied = random.pick([undefined, true, { linger: 500 }])
    exercised('remote', { tied })
    for (;;) {
      const name = `${client.name} ${++this.#streams}`
      try {
        const store = await this.#transport.connect(client, name, tied)
        return new RecordedStore(this, client.name, store, tied === undefined ? undefined : name)
      } catch (error) {
        if (!isLeaseholdError(error, 'timeout')) throw error
      }
    }
  }

  /** How much longer the server must keep the leases of a remote store whose streams are closed. */
  lingers(stream: string, grantedFrom: number, serverRate: number): number {
    return this.#transport?.lingers(stream, grantedFrom, serverRate) ?? Infinity
  }

  startServers(): void {
    for (const server of this.servers.all) this.#startServer(server)
  }

  #startServer(server: SimServer): void {
    const start = server.node.guard(() => this.#startServer(server))
    this.#serve(server).catch((error) => {
      // The log cannot be reached. Try again, as an operator would.
      if (this.setup.store === 'log' && isLeaseholdError(error)) this.world.after(200, start)
      else this.#notStarted(error)
    })
  }

  async #serve(server: SimServer): Promise<void> {
    const { node } = server
    const store = await openServerStore(this.setup.store, node, this.disk, this.servers.lag)
    this.#guarantees ??= store.guarantees
    if (this.setup.store !== 'log' || this.#truth.serverStart === 0) {
      this.#truth.serverStart = this.world.now
    }
    this.prolong()
    server.store = store
    this.#serverWatch.attach(store)
    this.#transport?.serve(store)
    this.world.note(node.name, 'serves')
  }

  /** The time of the log may have stood still until now, so leases may live longer. */
  prolong(): void {
    this.#truth.prolonged = this.world.now
  }

  /** Crashes the server during its next write. What is not written yet is lost. */
  crashServerWriting(): void {
    const { node } = this.servers.first
    if (this.setup.store === 'log') {
      this.crashServer()
      return
    }
    this.disk.onNextWrite((duration) => {
      const crash = node.guard(() => {
        if (!this.#calm) this.crashServer()
      })
      this.world.after(duration * this.world.random.next(), crash)
    })
  }

  crashServer(): void {
    const server = this.servers.any()
    const { node } = server
    if (!node.running || this.setup.store === 'memory') return
    const power = this.faults.powerLoss && this.world.random.chance(0.5)
    this.world.note(node.name, power ? 'loses power' : 'is killed')
    this.#serverWatch.detach(server.store)
    server.store = undefined
    this.#transport?.crashed()
    if (this.setup.store === 'file') this.#truth.serverEnd = this.world.now
    node.crash()
    this.disk.crashed(power)
    this.world.after(this.world.random.between(1, 1500), () => this.restartServers())
  }

  /** The disk is full for so long. */
  fillDisk(ms: number): void {
    this.world.note('disk', 'is full')
    this.disk.setFull(true)
    this.world.after(ms, () => this.disk.setFull(false))
  }

  calmDisk(): void {
    this.#calm = true
    this.disk.calm()
  }

  /** Starts those that are down. */
  restartServers(): void {
    for (const server of this.servers.all) {
      if (!server.node.running) server.node.start(() => this.#startServer(server))
    }
  }

  /** A failing disk keeps the server from starting. It is restarted later. */
  #notStarted(error: unknown): void {
    const disk = ['storage-failed', 'storage-full']
    if (!isLeaseholdError(error) || !disk.includes(error.code)) this.world.fail(error)
    else this.crashServer()
  }

  holds(holding: Holding): void {
    const { now } = this.world
    this.world.note(holding.client, 'holds', () => `${holding.keys} with token ${holding.token}`)
    this.held++
    this.holdings.push(holding)
    this.#holdings = this.#holdings.filter(
      ({ ended, hold }) => ended > now && hold.state !== 'lost',
    )
    this.#holdings.push(holding)
    for (const checker of this.#checkers) checker.held?.(holding, this.#holdings, this.truth)
  }

  /** A lock that was lost with this token was taken back with that one: nobody held in between. */
  reclaimed(keys: readonly string[], lost: number, token: number): void {
    for (const checker of this.#checkers) checker.reclaimed?.(keys, lost, token)
  }

  revived(client: string, state: string): void {
    for (const checker of this.#checkers) checker.revived?.(client, state)
  }

  /** The client that most recently got something, if it may still hold it. */
  get holder(): string | undefined {
    return this.#holdings.at(-1)?.client
  }

  wrote(write: Write): void {
    const outcome = write.accepted ? 'accepts' : 'refuses'
    this.world.note('resource', outcome, () => `${write.key} ${write.token}`)
    for (const checker of this.#checkers) checker.wrote?.(write)
  }

  gone(lease: LeaseId, end: End | undefined): void {
    const record = this.leases.get(lease)
    this.world.note('lease', 'is gone', () => `${lease} ${end?.reason ?? 'unknown'}`)
    this.#gone.add(lease)
    if (!record) return
    for (const checker of this.#checkers) checker.gone?.(record, end, this.truth)
  }

  /** What a client received about a revision. */
  observed(observation: Observation): void {
    this.observations.push(observation)
  }

  /** A client asks to end leases or claims. The server may or may not do it. */
  forced(client: string, request: RevokeRequest): ForcedEnd {
    this.world.note(client, 'revokes', () => JSON.stringify(request))
    const force = { client, request, asked: this.world.now, answered: Infinity }
    this.forcedEnds.push(force)
    if ('lease' in request.target) {
      const record = this.leases.get(request.target.lease)
      if (record) record.ended = true
    }
    return force
  }

  /** A client was notified that it lost what it held. */
  lost(loss: LossRecord): void {
    this.world.note(loss.client, 'loses', () => `${loss.keys}: ${loss.reason} ${loss.why ?? ''}`)
    for (const checker of this.#checkers) checker.lost?.(loss, this.truth)
  }

  /** Events that a server's store announces. */
  #received(events: readonly Event[]): void {
    for (const event of events) {
      const last = this.steps[this.steps.length - 1]
      if (last?.revision === event.revision && !last.isFullRead)
        (last.events as Event[]).push(event)
      else this.steps.push({ revision: event.revision, events: [event], isFullRead: false })
      if (event.type !== 'removed') continue
      if (event.end) this.ends.set(`${event.key} ${event.token}`, event.end)
      const record = this.leases.get(event.lease)
      if (!record) continue
      for (const checker of this.#checkers) checker.removed?.(event, record, this.truth)
    }
  }

  /** A call was answered for the first time. */
  called(call: Call): void {
    this.world.note(call.client, `${call.kind} ${call.answer?.type}`, () => JSON.stringify(call))
    for (const checker of this.#checkers) checker.called?.(call, this.truth)
    const { answer } = call
    if (answer && 'revision' in answer && answer.revision > 0) {
      this.revision(answer.revision, call.invoked)
    }
  }

  /** A call was answered once more. */
  repeated(call: Call): void {
    for (const checker of this.#checkers) checker.repeated?.(call)
  }

  revision(revision: number, invoked: number): void {
    for (const checker of this.#checkers) checker.revision?.(revision, invoked, this.truth)
  }

  keyRead(reading: KeyRead): void {
    this.revision(reading.revision, reading.invoked)
    for (const checker of this.#checkers) checker.read?.(reading, this.truth)
  }

  renewed(renewal: Renewal): void {
    for (const checker of this.#checkers) checker.renewed?.(renewal, this.truth)
  }

  leaseRead(reading: LeaseRead): void {
    for (const checker of this.#checkers) checker.leaseRead?.(reading)
  }

  /** A dead holder's key was taken over, so long after its lease could have expired. */
  tookOver(lateness: number): void {
    this.lateness = lateness
  }

  /** The outcome of a second process that tried to open the disk. */
  secondOwner(outcome: string): void {
    for (const checker of this.#checkers) checker.secondOwner?.(outcome)
  }

  progressed(what: string, took: number, bound: number): void {
    this.world.note(
      'world',
      'progress',
      () => `${what} in ${took.toFixed(1)} ms of ${bound.toFixed(0)}`,
    )
    for (const checker of this.#checkers) checker.progressed?.(what, took, bound)
  }

  /** A lease still existed when it was read, after all leases without renewals should be gone. */
  remains(lease: LeaseId, read: number): void {
    const record = this.leases.get(lease)
    for (const checker of this.#checkers) checker.remains?.(lease, record, read, this.truth)
  }

  /** All watches must have delivered what is announced by now when the world ends. */
  lastAnnouncement(): void {
    this.announced = this.#serverWatch.revision
  }

  finish(): void {
    const { revision } = this.#serverWatch
    for (const lease of this.#gone) {
      this.observed({ client: 'somebody', type: 'gone', revision, lease })
    }
    for (const checker of this.#checkers) checker.finish?.(this)
  }

  #violated(checker: string, message: string): void {
    this.world.note('CHECK', checker, () => message)
    if (this.violations.length < 20)
      this.violations.push({ checker, message, time: this.world.elapsed })
  }
}
