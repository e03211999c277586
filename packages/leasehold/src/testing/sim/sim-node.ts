import type { Clock, Timer } from '../../port/index.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { World } from './world.ts'

export interface SimNodeOptions {
  /** How fast its clock runs: 1.1 gains a tenth. */
  readonly rate?: number | undefined
  /** How far its clock is from true time at the beginning, in milliseconds. */
  readonly offset?: number | undefined
}

/**
 * No machine calls a timer in the very instant in which it was set. One that is already due takes a
 * millisecond, as in Node, and one that is not takes at least a moment: otherwise a timer could be
 * set again and again without time passing, if a sum was rounded down.
 */
const TIMER_DUE_MS = 1
const TIMER_LEAST_MS = 0.001

/**
 * A machine with one process. The process can be paused (it does nothing, its clock continues), the
 * machine suspended (its monotonic clock stops, too), and the process can crash and be restarted:
 * nothing of the old process is ever called after that.
 */
export class SimNode {
  readonly name: string
  readonly world: World
  readonly random: SeededRandom
  readonly #rate: number
  readonly #offset: number
  readonly #crashed = new Set<() => void>()
  #incarnation = 0
  #running = true
  #pausedUntil = 0
  /** What arrived while it was paused: timers that fired, and everything else. */
  #lateTimers: (() => void)[] = []
  #backlog: (() => void)[] = []
  #asleep = 0
  #wallShift = 0

  constructor(world: World, name: string, options: SimNodeOptions) {
    this.world = world
    this.name = name
    this.random = world.random.fork()
    this.#rate = options.rate ?? 1
    this.#offset = options.offset ?? 0
  }

  /** Whether it has a process, even a paused one. */
  get running(): boolean {
    return this.#running
  }

  get paused(): boolean {
    return this.world.now < this.#pausedUntil
  }

  /** The current process's clock: a new one for each process. */
  clock(): SimClock {
    return new SimClock(this)
  }

  /** Monotonic time on this machine. */
  monotonic(): number {
    return this.world.now * this.#rate + this.#offset - this.#asleep * this.#rate
  }

  /** The wall clock of this machine, which somebody may set. */
  wall(): number {
    return this.world.now * this.#rate + this.#offset + this.#wallShift
  }

  asleep(): number {
    return this.#asleep * this.#rate
  }

  /** How long a duration of this machine's time takes in true time. */
  trueSpan(span: number): number {
    return span / this.#rate
  }

  setWall(shift: number): void {
    this.#wallShift += shift
  }

  /** Identifies the process: another number after each crash. */
  get incarnation(): number {
    return this.#incarnation
  }

  /** Runs something in the current process, if any: at once, or after its pause. */
  deliver(run: () => void): void {
    if (!this.#running) return
    if (this.paused) this.#backlog.push(run)
    else run()
  }

  /** The same at some later time, and only if the process of this number still runs then. */
  guard(run: () => void, incarnation = this.#incarnation): () => void {
    return () => {
      if (incarnation === this.#incarnation) this.deliver(run)
    }
  }

  /** A timer fires: like an event loop, it runs its timers first after a pause. */
  ring(incarnation: number, run: () => void): void {
    if (incarnation !== this.#incarnation || !this.#running) return
    if (this.paused) this.#lateTimers.push(run)
    else run()
  }

  /** The process does nothing for this long. Timers and messages wait. */
  pause(ms: number): void {
    if (!this.#running) return
    const resume = this.world.now + ms
    if (resume <= this.#pausedUntil) return
    this.#pausedUntil = resume
    this.world.at(resume, () => this.#resume())
  }

  /** The machine sleeps for this long: nothing happens, and its monotonic clock stops. */
  suspend(ms: number): void {
    if (!this.#running || this.paused) return
    this.pause(ms)
    // It is counted at once: nothing can read it before the machine wakes up.
    this.#asleep += ms
  }

  /** The process is gone. */
  crash(): void {
    if (!this.#running) return
    this.#running = false
    this.#incarnation++
    this.#backlog = []
    this.#lateTimers = []
    this.#pausedUntil = 0
    const crashed = [...this.#crashed]
    this.#crashed.clear()
    for (const notify of crashed) notify()
  }

  /** Starts a new process, in which `start` runs. */
  start(start: () => void): void {
    this.#running = true
    start()
  }

  /** Called when the current process crashes. */
  onCrash(notify: () => void): void {
    this.#crashed.add(notify)
  }

  #resume(): void {
    if (this.paused) return
    const backlog = [...this.#lateTimers, ...this.#backlog]
    this.#lateTimers = []
    this.#backlog = []
    // One at a time, like an event loop: what the first causes comes before the second.
    for (const run of backlog) this.world.after(0, this.guard(run))
  }
}

/**
 * The clock of one process on a node. Its timers end with the process, and so do those that are set
 * afterwards: promises of a process that has crashed still settle here.
 */
export class SimClock implements Clock {
  readonly #node: SimNode
  readonly #incarnation: number

  constructor(node: SimNode) {
    this.#node = node
    this.#incarnation = node.incarnation
  }

  now(): number {
    return this.#node.monotonic()
  }

  asleep(): number {
    return this.#node.asleep()
  }

  /** For a program that trusts the wall clock. Nothing of ours does. */
  wall(): number {
    return this.#node.wall()
  }

  timer(time: number, run: () => void): Timer {
    return new SimTimer(this.#node, this.#incarnation, time, run)
  }

  defer(run: () => void): void {
    this.#node.world.after(0, this.#node.guard(run, this.#incarnation))
  }
}

class SimTimer implements Timer {
  readonly #node: SimNode
  readonly #incarnation: number
  readonly #time: number
  readonly #run: () => void
  #scheduled: Timer | undefined
  #cancelled = false

  constructor(node: SimNode, incarnation: number, time: number, run: () => void) {
    this.#node = node
    this.#incarnation = incarnation
    this.#time = time
    this.#run = run
    if (time < Infinity) this.#arm()
  }

  cancel(): void {
    this.#cancelled = true
    this.#scheduled?.cancel()
  }

  #arm(): void {
    const span = this.#node.trueSpan(this.#time - this.#node.monotonic())
    const delay = span > 0 ? Math.max(span, TIMER_LEAST_MS) : TIMER_DUE_MS
    this.#scheduled = this.#node.world.after(delay, () =>
      this.#node.ring(this.#incarnation, this.#fire),
    )
  }

  /** Durations are rounded, and the machine may have slept: a timer is never early. */
  readonly #fire = (): void => {
    if (this.#cancelled) return
    if (this.#node.monotonic() < this.#time) this.#arm()
    else this.#run()
  }
}
