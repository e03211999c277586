import type { FollowEnd, LogEntry } from '../../log/index.ts'
import { type Clock, LeaseholdError, type Random, type Timer } from '../../port/index.ts'
import type { Feed } from '../feed.ts'
import type { JetStream, NatsMessage } from './client.ts'

/** An idle consumer says that it is there so often; after three times that it is taken for dead. */
const HEARTBEAT_MS = 1000
const NS = 1_000_000

/**
 * Delivers a stream to a feed, from an ephemeral consumer that pushes and wants no acknowledgement.
 * The consumer counts what it sends. A number that is missing was lost on the way: interrupted. A
 * number of the stream that is missing was purged: trimmed.
 */
export class Consumer {
  readonly #jetStream: JetStream
  readonly #clock: Clock
  readonly #feed: Feed
  readonly #inbox: string
  #batch: LogEntry[] = []
  #read: number
  #consumed = 0
  #timer: Timer | undefined

  constructor(jetStream: JetStream, feed: Feed, clock: Clock, random: Random) {
    this.#jetStream = jetStream
    this.#clock = clock
    this.#feed = feed
    this.#read = feed.after
    this.#inbox = `_INBOX.leasehold.${random.id()}`
  }

  async start(stream: string): Promise<void> {
    const { client } = this.#jetStream
    const callback = (_error: Error | null, message: NatsMessage) => this.#hear(message)
    const subscription = client.subscribe(this.#inbox, { callback })
    this.#feed.onClose(() => {
      subscription.unsubscribe()
      this.#timer?.cancel()
    })
    const config = {
      deliver_subject: this.#inbox,
      deliver_policy: 'by_start_sequence',
      opt_start_seq: this.#read + 1,
      ack_policy: 'none',
      max_deliver: 1,
      flow_control: true,
      idle_heartbeat: HEARTBEAT_MS * NS,
      inactive_threshold: 10 * HEARTBEAT_MS * NS,
      mem_storage: true,
      num_replicas: 1,
    }
    await this.#jetStream.ask(`CONSUMER.CREATE.${stream}`, { stream_name: stream, config })
    this.#expectHeartbeat()
  }

  #hear({ data, reply, headers }: NatsMessage): void {
    if (!this.#feed.isOpen) return
    this.#expectHeartbeat()
    if (headers?.code === 100) this.#control(headers, reply)
    else if (reply?.startsWith('$JS.ACK.')) {
      // $JS.ACK.<stream>.<consumer>.<tries>.<number in the stream>.<number in the consumer>.…, with
      // a domain and an account in front if there are more than nine parts.
      const parts = reply.split('.')
      const [position, consumed] = parts.slice(parts.length > 9 ? 7 : 5).map(Number)
      this.#entry({ position: position!, bytes: data }, consumed!)
    }
  }

  #entry(entry: LogEntry, consumed: number): void {
    if (consumed !== this.#consumed + 1) this.#lost()
    else if (entry.position !== this.#read + 1) this.#end({ cause: 'trimmed' })
    else {
      this.#consumed = consumed
      this.#read = entry.position
      // All that one packet brought go together.
      if (this.#batch.push(entry) === 1) queueMicrotask(() => this.#flush())
    }
  }

  #control(headers: NonNullable<NatsMessage['headers']>, reply: string | undefined): void {
    const stalled = reply || headers.get('Nats-Consumer-Stalled')
    if (stalled) this.#jetStream.client.publish(stalled)
    if (headers.description !== 'Idle Heartbeat') return
    if (Number(headers.get('Nats-Last-Consumer')) !== this.#consumed) this.#lost()
    else if (Number(headers.get('Nats-Last-Stream')) > this.#read) {
      this.#end({ cause: 'trimmed' })
    }
  }

  #expectHeartbeat(): void {
    this.#timer?.cancel()
    if (!this.#feed.isOpen) return
    const time = this.#clock.now() + 3 * HEARTBEAT_MS
    this.#timer = this.#clock.timer(time, () => this.#lost())
  }

  #flush(): void {
    const batch = this.#batch
    this.#batch = []
    this.#feed.deliver(batch)
  }

  #lost(): void {
    const message = 'the NATS consumer lost its connection or its server: follow again'
    this.#end({ cause: 'interrupted', error: new LeaseholdError('unknown-outcome', message) })
  }

  #end(end: FollowEnd): void {
    this.#flush()
    this.#feed.end(end)
  }
}
