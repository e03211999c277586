import { type Clock, LeaseholdError } from '../../port/index.ts'
import { inTime } from '../engine-log.ts'
import type { Feed } from '../feed.ts'
import type { Commands } from './client.ts'
import { faultOf } from './faults.ts'
import type { Stream } from './stream.ts'

/** A read waits for so long. Then the follower checks that the stream is still the same. */
const BLOCK_MS = 1000

/** Reads the stream on a connection of its own, until the feed is closed. */
export class Reader {
  readonly #feed: Feed
  readonly #stream: Stream
  readonly #epoch: string
  readonly #clock: Clock
  readonly #timeout: number

  constructor(feed: Feed, stream: Stream, epoch: string, clock: Clock, timeout: number) {
    this.#feed = feed
    this.#stream = stream
    this.#epoch = epoch
    this.#clock = clock
    this.#timeout = timeout
  }

  async start(commands: Commands): Promise<void> {
    const { send, close } = await commands.duplicate()
    this.#feed.onClose(close)
    this.#run(send).catch((error: unknown) => {
      const fault = error instanceof LeaseholdError ? error : faultOf(error)
      this.#feed.end({ cause: 'interrupted', error: fault })
    })
  }

  async #run(send: Commands['send']): Promise<void> {
    const feed = this.#feed
    for (let block = 0; feed.isOpen; block = BLOCK_MS) {
      const entries = await this.#read(send, block)
      // Positions have no gaps: what is missing was trimmed.
      if (entries.length === 0) await this.#check(send)
      else if (entries[0]!.position > feed.after + 1) feed.end({ cause: 'trimmed' })
      else feed.deliver(entries)
    }
  }

  async #check(send: Commands['send']): Promise<void> {
    const feed = this.#feed
    const end = await this.#inTime(this.#stream.end(), 0)
    if (end?.epoch !== this.#epoch || end.tail < feed.after) {
      feed.end({ cause: 'ahead', tail: end?.tail ?? 0 })
    } else if (end.tail > feed.after && (await this.#read(send, 0)).length === 0) {
      feed.end({ cause: 'trimmed' })
    }
  }

  #read(send: Commands['send'], block: number) {
    return this.#inTime(this.#stream.read(send, this.#epoch, this.#feed.after, block), block)
  }

  #inTime<Answer>(answer: Promise<Answer>, more: number): Promise<Answer> {
    const late = `Redis did not answer within ${this.#timeout} ms: follow again`
    return inTime(answer, this.#clock, this.#timeout + more, late)
  }
}
