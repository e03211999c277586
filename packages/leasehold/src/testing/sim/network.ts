import type { SimNode } from './sim-node.ts'
import type { World } from './world.ts'

export interface LinkFaults {
  /** The minimum and maximum time of a message in the network, in milliseconds. */
  readonly delay: readonly [number, number]
  /** The share of messages that are lost, and of those that arrive twice. */
  readonly loss: number
  readonly duplication: number
  /** The share of messages that take up to ten times longer than the others. */
  readonly slow: number
  /** The share of messages that arrive seconds later than the others. Default: none. */
  readonly late?: number | undefined
}

/** How late such a message arrives, minimum and maximum. */
const LATE_MS: readonly [number, number] = [500, 4000]

const TRIES = 5
const RETRY_MS = 60

/**
 * Carries messages between nodes. Links have a direction: one may be cut while the other works.
 * Messages are lost, late, duplicated and reordered; streams, like TCP, are in order and without loss
 * until they break.
 */
export class Network {
  readonly world: World
  #faults: LinkFaults
  readonly #cuts = new Set<string>()

  constructor(world: World, faults: LinkFaults) {
    this.world = world
    this.#faults = faults
  }

  cut(from: SimNode, to: SimNode): void {
    this.#cuts.add(`${from.name}>${to.name}`)
  }

  heal(from: SimNode, to: SimNode): void {
    this.#cuts.delete(`${from.name}>${to.name}`)
  }

  /** From now on nothing is cut, lost or duplicated, and messages take the minimum time. */
  calm(): void {
    this.#cuts.clear()
    const [least] = this.#faults.delay
    this.#faults = { delay: [least, 2 * least], loss: 0, duplication: 0, slow: 0 }
  }

  /** Sends a message: `receive` is called at the other end not at all, once, or twice. */
  send(from: SimNode, to: SimNode, receive: () => void): void {
    const { random } = this.world
    const copies = random.chance(this.#faults.duplication) ? 2 : 1
    for (let copy = 0; copy < copies; copy++) {
      if (this.#lost(from, to)) continue
      this.world.after(this.#delay(true), () => this.#arrive(from, to, receive))
    }
  }

  stream(from: SimNode, to: SimNode, broken: () => void): Stream {
    return new Stream(this, from, to, broken)
  }

  /** One transmission of a stream's message. Returns whether it will arrive. */
  transmit(from: SimNode, to: SimNode, notBefore: number, receive: () => void): number | undefined {
    if (this.#lost(from, to) || !to.running) return undefined
    const time = Math.max(notBefore, this.world.now + this.#delay())
    // A cut that begins while it is in transit does not stop it: a stream has no gaps.
    this.world.at(time, () => to.deliver(receive))
    return time
  }

  #arrive(from: SimNode, to: SimNode, receive: () => void): void {
    if (!this.#isCut(from, to)) to.deliver(receive)
  }

  #lost(from: SimNode, to: SimNode): boolean {
    return this.#isCut(from, to) || this.world.random.chance(this.#faults.loss)
  }

  #isCut(from: SimNode, to: SimNode): boolean {
    return this.#cuts.size > 0 && this.#cuts.has(`${from.name}>${to.name}`)
  }

  /** A single message may be late. In a stream all messages behind it would be as late. */
  #delay(mayBeLate = false): number {
    const { random } = this.world
    const [least, most] = this.#faults.delay
    const { late = 0 } = this.#faults
    if (mayBeLate && late > 0 && random.chance(late)) return random.between(...LATE_MS)
    const delay = random.between(least, most)
    return random.chance(this.#faults.slow) ? delay * random.between(1, 10) : delay
  }
}

/** One direction of a connection. What could not be sent is sent again, until it breaks. */
export class Stream {
  readonly #network: Network
  readonly #from: SimNode
  readonly #to: SimNode
  readonly #broken: () => void
  readonly #queue: (() => void)[] = []
  #open = true
  #sending = false
  #lastArrival = 0

  constructor(network: Network, from: SimNode, to: SimNode, broken: () => void) {
    this.#network = network
    this.#from = from
    this.#to = to
    this.#broken = broken
    to.onCrash(() => this.break())
    from.onCrash(() => this.break())
  }

  send(receive: () => void): void {
    if (!this.#open) return
    this.#queue.push(receive)
    if (!this.#sending) this.#next(0)
  }

  /** Nothing more is sent, and no side is notified. */
  close(): void {
    this.#open = false
  }

  /** The other end notices after a while that nothing arrives any more. */
  break(): void {
    if (!this.#open) return
    this.#open = false
    const delay = this.#network.world.random.between(5, 400)
    this.#network.world.after(delay, this.#broken)
  }

  #next(tries: number): void {
    const message = this.#queue[0]
    this.#sending = message !== undefined && this.#open
    if (!message || !this.#open) return
    const receive = (): void => {
      if (this.#open) message()
    }
    const arrival = this.#network.transmit(this.#from, this.#to, this.#lastArrival, receive)
    if (arrival !== undefined) {
      this.#lastArrival = arrival
      this.#queue.shift()
      this.#next(0)
    } else if (tries >= TRIES) this.break()
    else this.#network.world.after(RETRY_MS, () => this.#next(tries + 1))
  }
}
