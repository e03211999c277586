import { isLeaseholdError, Leasehold } from 'leasehold'
import { fileStore } from 'leasehold/file'
import type { Guarantees } from 'leasehold/port'
import { Network, SimDisk, type SimNode, SimServer, SimStore, World } from 'leasehold/testing'
import type { Violation } from '../checkers/checker.js'
import { drawFaults, type Faults } from '../faults/faults.js'

/** Events are soon dropped, so that views must sometimes read everything again. */
const LIMITS = { events: 64, history: 256, idleKeys: 64, requests: 4096, ended: 4096 }

/** One process of a scenario, on its own machine. It may die and restart. */
export interface RecipeActor {
  readonly node: SimNode
  /** Starts in a new process, with its own client. */
  start(leasehold: Leasehold): void
}

/**
 * The world of a recipe: a server with its disk, a network, and actors that use the recipe through
 * a real client. Each seed determines its faults. Then the system heals, and the recipe must keep
 * its promises.
 */
export class RecipeHarness {
  readonly world: World
  readonly faults: Faults
  readonly violations: Violation[] = []
  readonly actors: RecipeActor[] = []
  /** The number of successful operations: a scenario must not be idle. */
  operations = 0
  readonly #network: Network
  readonly #server: SimServer
  readonly #disk: SimDisk
  #guarantees: Guarantees | undefined
  #healed = false

  constructor(seed: number, trace: boolean) {
    this.world = new World(seed, { trace })
    this.faults = drawFaults(this.world.random.fork())
    this.#network = new Network(this.world, this.faults.link)
    const node = this.world.node('server', { rate: this.#rate() })
    this.#server = new SimServer(node, this.#network)
    this.#disk = new SimDisk(node, this.faults.disk)
  }

  get healed(): boolean {
    return this.#healed
  }

  /** A machine for an actor. */
  machine(name: string): SimNode {
    return this.world.node(name, { rate: this.#rate(), offset: this.world.random.between(0, 1e6) })
  }

  async begin(): Promise<void> {
    this.#startServer()
    // The store of a recipe always answers in time; late stores are a matter of the client.
    await this.world.run(this.world.now + 1500)
  }

  add(actor: RecipeActor): void {
    this.actors.push(actor)
    this.#open(actor)
  }

  note(who: string, what: string, detail?: () => string): void {
    this.world.note(who, what, detail)
  }

  violated(checker: string, message: string): void {
    this.world.note('CHECK', checker, () => message)
    if (this.violations.length < 20) {
      this.violations.push({ checker, message, time: this.world.elapsed })
    }
  }

  /** Schedules all faults from now until `end`. */
  planFaults(end: number): void {
    const { world, faults } = this
    const { random } = world
    const several = (times: number, happen: () => void): void => {
      for (let left = times + random.next() - 0.5; left > 0; left--) {
        world.at(random.between(world.now, end), happen)
      }
    }
    const someone = () => random.pick(this.actors)
    several(faults.serverCrashes / 2, () => this.#crashServer())
    several(faults.serverPauses, () => this.#server.node.pause(random.between(10, 2500)))
    several(faults.clientCrashes, () => this.crash(someone()))
    several(faults.clientPauses, () => someone().node.pause(random.between(10, 3000)))
    several(faults.suspends, () => someone().node.suspend(random.between(300, 4000)))
    several(faults.cuts, () => this.#cut(someone().node))
  }

  /** Kills its process, and starts another after a while. */
  crash(actor: RecipeActor): void {
    if (!actor.node.running) return
    this.note(actor.node.name, 'is killed')
    actor.node.crash()
    this.world.after(this.world.random.between(10, 4000), () => this.#open(actor))
  }

  /** Ends all faults, and restarts every process that is down. */
  heal(): void {
    this.#healed = true
    this.note('world', 'is healed')
    this.#network.calm()
    this.#disk.calm()
    if (!this.#server.node.running) this.#server.node.start(() => this.#startServer())
    for (const actor of this.actors) this.#open(actor)
  }

  /** Calls `run` in the actor's process after a while, unless the process has died. */
  later(node: SimNode, ms: number, run: () => void): void {
    this.world.after(ms, node.guard(run))
  }

  rest(node: SimNode, ms: number): Promise<void> {
    return new Promise((resolve) => this.later(node, ms, resolve))
  }

  #open(actor: RecipeActor): void {
    const { node } = actor
    if (node.running && this.#opened.has(actor)) return
    this.#opened.add(actor)
    node.onCrash(() => this.#opened.delete(actor))
    const open = () => {
      Leasehold.open(new SimStore(node, this.#server, this.#guarantees!), {
        holder: node.name,
        clock: node.clock(),
        random: node.random,
        drift: this.#driftBound(),
        callTimeout: node.random.pick([200, 600]),
      }).then(
        (leasehold) => actor.start(leasehold),
        (error) => this.world.fail(error),
      )
    }
    if (node.running) open()
    else node.start(open)
  }

  readonly #opened = new Set<RecipeActor>()

  #cut(node: SimNode): void {
    const { random } = this.world
    const server = this.#server.node
    const both = random.chance(0.5)
    const outward = random.chance(0.5)
    if (both || outward) this.#network.cut(node, server)
    if (both || !outward) this.#network.cut(server, node)
    this.note(node.name, both ? 'is cut off' : outward ? 'is not heard' : 'hears nothing')
    this.world.after(random.between(50, 5000), () => {
      this.#network.heal(node, server)
      this.#network.heal(server, node)
    })
  }

  #crashServer(): void {
    const { node } = this.#server
    if (!node.running || this.#healed) return
    this.note('server', 'is killed')
    this.#server.store = undefined
    node.crash()
    this.#disk.crashed(false)
    this.world.after(this.world.random.between(1, 1500), () => {
      if (!node.running) node.start(() => this.#startServer())
    })
  }

  #startServer(): void {
    const { node } = this.#server
    const { random } = node
    const options = { clock: node.clock(), random, disk: this.#disk, limits: LIMITS }
    fileStore('sim', { ...options, segmentBytes: 16_384, snapshotBytes: 32_768 }).then(
      (store) => {
        this.#guarantees = store.guarantees
        this.#server.store = store
        this.note('server', 'serves')
      },
      (error) => {
        if (isLeaseholdError(error, 'storage-failed')) this.#crashServer()
        else this.world.fail(error)
      },
    )
  }

  #driftBound(): number {
    const { drift } = this.faults
    return 1 - (1 - drift) / (1 + drift)
  }

  #rate(): number {
    const { random } = this.world
    const extent = random.chance(0.5) ? random.pick([-1, 1]) : random.between(-1, 1)
    return 1 + extent * this.faults.drift
  }
}
