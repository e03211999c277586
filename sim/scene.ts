import { isLeaseholdError } from 'leasehold'
import { fileStore } from 'leasehold/file'
import { memoryStore } from 'leasehold/memory'
import type { Clock, End, Guarantees, LeaseId, LeaseStore } from 'leasehold/port'
import { Network, SimDisk, type SimNode, SimServer, type SimStore, World } from 'leasehold/testing'
import { type Casting, drawCasting } from './cast.js'
import type { Checker, KeyRead, LeaseRead, Renewal, Truth, Violation } from './checker.js'
import { checkers } from './checkers/index.js'
import { drawFaults, type Faults, longestDelay } from './faults.js'
import type { Call, Family, Holding, LeaseRecord, WatchRecord, Write } from './history.js'
import { RecordedStore } from './recorded-store.js'

/** Small, so that a world is cheap and every limit is reached in it. */
const LIMITS = {
  events: 64,
  history: 64,
  historyPerKey: 4,
  idleKeys: 16,
  requests: 4096,
  ended: 4096,
}
const SEGMENT_BYTES = 4096
const SNAPSHOT_BYTES = 6000

/**
 * One world with a server, its clients and those who check, and how they are told things. Actors
 * call its methods with whatever they are told; it hands that to the checkers.
 */
export class Scene {
  readonly world: World
  readonly faults: Faults
  readonly casting: Casting
  readonly network: Network
  readonly server: SimServer
  readonly violations: Violation[] = []
  /** How many times somebody held. */
  held = 0
  /** How long after the expiry of a dead holder's lease the next one held. */
  lateness = -Infinity
  readonly calls: Call[] = []
  readonly watches: WatchRecord[] = []
  readonly families: Family[] = []
  readonly leases = new Map<LeaseId, LeaseRecord>()
  readonly #disk: SimDisk
  readonly #checkers: readonly Checker[]
  readonly #truth: { -readonly [K in keyof Truth]: Truth[K] }
  /** Those who hold and may believe so still. */
  #holdings: Holding[] = []
  #guarantees: Guarantees | undefined
  #calm = false

  constructor(seed: number, trace: boolean) {
    const world = new World(seed, { trace })
    this.world = world
    this.faults = drawFaults(world.random.fork())
    this.casting = drawCasting(world.random.fork())
    this.network = new Network(world, this.faults.link)
    const serverRate = this.rate()
    const { drift, link } = this.faults
    const delay = longestDelay(link)
    this.#truth = { now: 0, serverRate, serverStart: 0, serverEnd: 0, drift, delay }
    const node = world.node('server', { rate: serverRate, offset: world.random.between(0, 1e6) })
    this.server = new SimServer(node, this.network)
    this.#disk = new SimDisk(node, this.faults.disk)
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

  /** Half of all clocks are as fast or as slow as they may be: that is where margins are too small. */
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
  store(client: SimNode): SimStore {
    return new RecordedStore(this, client, this.server, this.#guarantees!)
  }

  async startServer(): Promise<void> {
    const { node } = this.server
    const clock = node.clock()
    const store = await this.#openStore(clock)
    this.#guarantees = store.guarantees
    this.#truth.serverStart = this.world.now
    this.server.store = store
    this.world.note('server', 'serves')
  }

  #openStore(clock: Clock): LeaseStore | Promise<LeaseStore> {
    if (this.casting.store === 'memory') return memoryStore({ clock, limits: LIMITS })
    return fileStore('sim', {
      clock,
      random: this.server.node.random,
      disk: this.#disk,
      limits: LIMITS,
      segmentBytes: SEGMENT_BYTES,
      snapshotBytes: SNAPSHOT_BYTES,
    })
  }

  /** Crashes it in the midst of its next write: what it has told then and not written is lost. */
  crashServerWriting(): void {
    const { node } = this.server
    this.#disk.onNextWrite((duration) => {
      const crash = node.guard(() => {
        if (!this.#calm) this.crashServer()
      })
      this.world.after(duration * this.world.random.next(), crash)
    })
  }

  crashServer(): void {
    const { node } = this.server
    if (!node.running || this.casting.store === 'memory') return
    const power = this.faults.powerLoss && this.world.random.chance(0.5)
    this.world.note('server', power ? 'loses power' : 'is killed')
    this.server.store = undefined
    this.#truth.serverEnd = this.world.now
    node.crash()
    this.#disk.crashed(power)
    this.world.after(this.world.random.between(1, 1500), () => this.restartServer())
  }

  calmDisk(): void {
    this.#calm = true
    this.#disk.calm()
  }

  restartServer(): void {
    const { node } = this.server
    if (node.running) return
    node.start(() => {
      this.startServer().catch((error) => this.#notStarted(error))
    })
  }

  /** A disk that fails keeps the server from starting; whoever looks after it tries again. */
  #notStarted(error: unknown): void {
    if (!isLeaseholdError(error, 'storage-failed')) this.world.fail(error)
    else this.crashServer()
  }

  holds(holding: Holding): void {
    const { now } = this.world
    this.world.note(holding.client, 'holds', () => `${holding.key} with token ${holding.token}`)
    this.held++
    this.#holdings = this.#holdings.filter(
      ({ ended, hold }) => ended > now && hold.state !== 'lost',
    )
    this.#holdings.push(holding)
    for (const checker of this.#checkers) checker.held?.(holding, this.#holdings, this.truth)
  }

  revived(client: string, state: string): void {
    for (const checker of this.#checkers) checker.revived?.(client, state)
  }

  /** The client that was told last that it holds something, if it may still do. */
  get holder(): string | undefined {
    return this.#holdings.at(-1)?.client
  }

  wrote(write: Write): void {
    this.world.note(
      'resource',
      write.accepted ? 'accepts' : 'refuses',
      () => `${write.key} ${write.token}`,
    )
    for (const checker of this.#checkers) checker.wrote?.(write)
  }

  gone(lease: LeaseId, end: End | undefined): void {
    const record = this.leases.get(lease)
    this.world.note('lease', 'is gone', () => `${lease} ${end?.reason ?? 'unknown'}`)
    if (!record) return
    for (const checker of this.#checkers) checker.gone?.(record, end, this.truth)
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

  /** A second process tries to own the disk, while the first lives. */
  openTwice(): void {
    const { node, store } = this.server
    if (!store || !node.running || this.casting.store === 'memory') return
    this.world.note('rival', 'opens the disk')
    const rival = { clock: node.clock(), random: node.random, disk: this.#disk }
    fileStore('sim', rival).then(
      () => this.#secondOwner('opened'),
      (error: unknown) => {
        if (!isLeaseholdError(error, 'storage-locked')) this.#secondOwner(String(error))
      },
    )
  }

  #secondOwner(outcome: string): void {
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

  /** A lease was read after everything should have run out that nobody renews, at this time. */
  remains(lease: LeaseId, read: number): void {
    const record = this.leases.get(lease)
    for (const checker of this.#checkers) checker.remains?.(lease, record, read, this.truth)
  }

  finish(): void {
    for (const checker of this.#checkers) checker.finish?.(this)
  }

  #violated(checker: string, message: string): void {
    this.world.note('CHECK', checker, () => message)
    if (this.violations.length < 20)
      this.violations.push({ checker, message, time: this.world.elapsed })
  }
}
