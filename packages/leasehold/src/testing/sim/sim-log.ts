import {
  checkEntry,
  closedError,
  type FollowEnd,
  type Follower,
  type Following,
  type Log,
  type LogEntry,
  type LogPromises,
  type Position,
  type Snapshot,
} from '../../log/index.ts'
import type { Network, Stream } from './network.ts'
import type { SimNode } from './sim-node.ts'

/** How long a replica waits for an answer of the log. */
const TIMEOUT_MS = 1000
const ENTRY_BYTES = 64 * 1024

/**
 * A log on a node of the world. Replicas on other nodes reach it over the network: a request may be
 * lost, late or duplicated, and so may its answer. So an entry may be in the log twice, or appear long
 * after its replica stopped waiting. The log itself loses nothing.
 */
export class SimLog {
  readonly node: SimNode
  readonly network: Network
  readonly #followers = new Set<() => void>()
  #entries: LogEntry[] = []
  #last: Position = 0
  #trimmed: Position = 0
  #snapshot: Snapshot | undefined

  constructor(node: SimNode, network: Network) {
    this.node = node
    this.network = network
  }

  /** The log for the process that runs on this node now. */
  open(node: SimNode): Log {
    return new SimLogHandle(this, node)
  }

  append(bytes: Uint8Array): Position {
    this.#entries.push({ position: ++this.#last, bytes })
    for (const notify of this.#followers) notify()
    return this.#last
  }

  tail(): Position {
    return this.#last
  }

  after(position: Position): readonly LogEntry[] | FollowEnd {
    if (position > this.#last) return { cause: 'ahead', tail: this.#last }
    if (position < this.#trimmed) return { cause: 'trimmed' }
    return this.#entries.slice(this.#entries.length - (this.#last - position))
  }

  save(snapshot: Snapshot): void {
    if (this.#snapshot === undefined || this.#snapshot.position < snapshot.position) {
      this.#snapshot = snapshot
    }
  }

  load(): Snapshot | undefined {
    return this.#snapshot
  }

  trim(through: Position): void {
    this.#trimmed = Math.max(this.#trimmed, Math.min(through, this.#last))
    this.#entries = this.#entries.filter(({ position }) => position > this.#trimmed)
  }

  onEntries(notify: () => void): () => void {
    this.#followers.add(notify)
    return () => this.#followers.delete(notify)
  }
}

class SimLogHandle implements Log {
  readonly promises: LogPromises = {
    engine: 'simulated',
    durability: 'majority',
    failoverLoses: false,
    entryBytes: ENTRY_BYTES,
    timeout: TIMEOUT_MS,
    notes: [],
  }
  readonly #log: SimLog
  readonly #node: SimNode
  readonly #followings = new Set<SimFollowing>()
  #open = true

  constructor(log: SimLog, node: SimNode) {
    this.#log = log
    this.#node = node
    // Promises of a process that has crashed still settle here, and must not reach the log.
    node.onCrash(() => {
      this.#open = false
    })
  }

  async append(entry: Uint8Array): Promise<Position> {
    checkEntry(entry, ENTRY_BYTES)
    const bytes = entry.slice()
    return this.#call(() => this.#log.append(bytes))
  }

  follow(after: Position, follower: Follower): Following {
    if (!this.#open) throw closedError()
    const following = new SimFollowing(this.#log, this.#node, after, follower)
    this.#followings.add(following)
    return following
  }

  tail(): Promise<Position> {
    return this.#call(() => this.#log.tail())
  }

  saveSnapshot({ position, chunks }: Snapshot): Promise<void> {
    const copy = { position, chunks: chunks.map((chunk) => chunk.slice()) }
    return this.#call(() => this.#log.save(copy))
  }

  loadSnapshot(): Promise<Snapshot | undefined> {
    return this.#call(() => this.#log.load())
  }

  trim(through: Position): Promise<void> {
    return this.#call(() => this.#log.trim(through))
  }

  async close(): Promise<void> {
    this.#open = false
    for (const following of this.#followings) following.close()
  }

  async #call<Answer>(run: () => Answer): Promise<Answer> {
    if (!this.#open) throw closedError()
    const { network, node } = this.#log
    return new Promise((resolve, reject) => {
      const late = (): void => reject(new Error(`the log did not answer within ${TIMEOUT_MS} ms`))
      const clock = this.#node.clock()
      const timer = clock.timer(clock.now() + TIMEOUT_MS, late)
      const { incarnation } = this.#node
      const answered = (answer: Answer) =>
        this.#node.guard(() => {
          timer.cancel()
          resolve(answer)
        }, incarnation)
      network.send(this.#node, node, () => network.send(node, this.#node, answered(run())))
    })
  }
}

/** Entries arrive in order, until the connection breaks. */
class SimFollowing implements Following {
  readonly #log: SimLog
  readonly #node: SimNode
  readonly #follower: Follower
  #after: Position
  #open = true
  #stream: Stream | undefined
  #forget: () => void = () => {}

  constructor(log: SimLog, node: SimNode, after: Position, follower: Follower) {
    this.#log = log
    this.#node = node
    this.#after = after
    this.#follower = follower
    node.onCrash(() => this.close())
    const broken = node.guard(() => this.#interrupted())
    const asked = log.network.stream(node, log.node, broken)
    asked.send(() => this.#begin(broken))
  }

  close(): void {
    this.#open = false
    this.#forget()
    this.#stream?.close()
  }

  #begin(broken: () => void): void {
    if (!this.#open) return
    const { network, node } = this.#log
    this.#stream = network.stream(node, this.#node, broken)
    this.#forget = this.#log.onEntries(() => this.#send())
    this.#send()
  }

  #send(): void {
    const next = this.#log.after(this.#after)
    if ('cause' in next) {
      this.#forget()
      this.#stream?.send(() => this.#end(next))
    } else if (next.length > 0) {
      this.#after = next[next.length - 1]!.position
      this.#stream?.send(() => {
        if (this.#open) this.#follower.entries(next)
      })
    }
  }

  #interrupted(): void {
    this.#end({ cause: 'interrupted', error: new Error('the connection to the log broke') })
  }

  #end(cause: FollowEnd): void {
    if (!this.#open) return
    this.close()
    this.#follower.ended(cause)
  }
}
