import { nodeOs } from '../runtime.ts'
import type { Clock, Timer } from './clock.ts'

/** The longest delay that setTimeout accepts. A later timer is set in steps. */
const DELAY_MAX = 2 ** 31 - 1

/** Read once, because reading it is as slow as reading the clock. */
const ORIGIN = performance.timeOrigin

/** A smaller difference between two clocks is noise. A larger one is a sleep or a clock change. */
const NOTICEABLE_MS = 200

/**
 * Without Node, seconds of the wall clock: then a wall clock that is set ahead counts as sleep, and
 * what is held ends too early, never too late.
 */
const uptime: () => number = nodeOs?.uptime ?? (() => Date.now() / 1000)

/**
 * The machine's clock.
 *
 * `performance.now()` follows CLOCK_MONOTONIC, which stops while the machine is suspended.
 * `os.uptime()` does not stop, but is slow to read. The wall clock does not stop either and is fast
 * to read, so `asleep` reads it first. Only if the two clocks have moved apart does it read the
 * uptime, to find out which happened: the machine slept, or somebody set the wall clock.
 */
export class SystemClock implements Clock {
  #asleep = 0
  #wall = Date.now()
  #wallAhead = this.#wall - performance.now()
  #uptimeAhead: number
  readonly #uptime: () => number

  /** `machineUptime` returns how many seconds ago the machine started, sleep included. */
  constructor(machineUptime: () => number = uptime) {
    this.#uptime = machineUptime
    this.#uptimeAhead = this.#readUptimeAhead()
  }

  now(): number {
    return ORIGIN + performance.now()
  }

  asleep(): number {
    const wall = Date.now()
    // If the wall clock has hardly moved, the machine has hardly slept.
    if (wall < this.#wall || wall - this.#wall > NOTICEABLE_MS) {
      this.#wall = wall
      this.#compare(wall)
    }
    return this.#asleep
  }

  timeOfDay(): number {
    return Date.now()
  }

  timer(time: number, run: () => void, keepAlive = false): Timer {
    return new SystemTimer(this, time, run, keepAlive)
  }

  defer(run: () => void): void {
    if (typeof setImmediate === 'function') setImmediate(run)
    else setTimeout(run, 0)
  }

  #compare(wall: number): void {
    const wallAhead = wall - performance.now()
    if (Math.abs(wallAhead - this.#wallAhead) <= NOTICEABLE_MS) return
    this.#wallAhead = wallAhead
    const uptimeAhead = this.#readUptimeAhead()
    if (uptimeAhead - this.#uptimeAhead <= NOTICEABLE_MS) return
    this.#asleep += uptimeAhead - this.#uptimeAhead
    this.#uptimeAhead = uptimeAhead
  }

  #readUptimeAhead(): number {
    return this.#uptime() * 1000 - performance.now()
  }
}

class SystemTimer implements Timer {
  readonly #clock: Clock
  readonly #time: number
  readonly #run: () => void
  readonly #keepAlive: boolean
  #handle: NodeJS.Timeout | undefined

  constructor(clock: Clock, time: number, run: () => void, keepAlive: boolean) {
    this.#clock = clock
    this.#time = time
    this.#run = run
    this.#keepAlive = keepAlive
    if (time < Infinity) this.#arm()
  }

  cancel(): void {
    clearTimeout(this.#handle)
    this.#handle = undefined
  }

  #arm(): void {
    const delay = Math.min(Math.ceil(this.#time - this.#clock.now()), DELAY_MAX)
    this.#handle = setTimeout(() => this.#fire(), Math.max(delay, 0))
    // A timer of a browser is a number.
    if (!this.#keepAlive) this.#handle.unref?.()
  }

  /** setTimeout may fire a little early, and a far timer is set in steps: check the time first. */
  #fire(): void {
    if (this.#clock.now() < this.#time) this.#arm()
    else this.#run()
  }
}

export const systemClock: Clock = new SystemClock()
