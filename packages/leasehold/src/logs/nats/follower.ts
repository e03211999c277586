import type { FollowEnd, LogEntry } from '../../log/index.ts'
import { LeaseholdError, type Timer } from '../../port/index.ts'
import type { Feed } from '../feeds/feed.ts'
import type { LogSettings } from '../options/options.ts'
import type { JetStream, NatsMessage } from './client/index.ts'

/** How often an idle consumer sends a heartbeat. After three times as long it counts as lost. */
const HEARTBEAT_MS = 1000
const NS = 1_000_000

const CONSUMER = {
  deliver_policy: 'by_start_sequence',
  ack_policy: 'none',
  max_deliver: 1,
  flow_control: true,
  idle_heartbeat: HEARTBEAT_MS * NS,
  inactive_threshold: 10 * HEARTBEAT_MS * NS,
  mem_storage: true,
  num_replicas: 1,
}

/**
 * Delivers a stream to a feed, by an ephemeral push consumer without acknowledgements. The consumer
 * numbers its messages. If one of its numbers is missing, a message was lost: interrupted. If a number
 * of the stream is missing, it was purged: trimmed.
 */
export async function followStream(
  jetStream: JetStream,
  stream: string,
  feed: Feed,
  { clock, random }: LogSettings,
): Promise<void> {
  const inbox = `_INBOX.leasehold.${random.id()}`
  const batch: LogEntry[] = []
  let read = feed.after
  let consumed = 0
  let timer: Timer | undefined

  const flush = () => feed.deliver(batch.splice(0))
  const end = (cause: FollowEnd) => {
    flush()
    feed.end(cause)
  }
  const lost = () => {
    const message = 'the NATS consumer lost its connection or its server: follow again'
    end({ cause: 'interrupted', error: new LeaseholdError('unknown-outcome', message) })
  }
  const expectHeartbeat = () => {
    timer?.cancel()
    if (feed.isOpen) timer = clock.timer(clock.now() + 3 * HEARTBEAT_MS, lost)
  }
  const control = (headers: NonNullable<NatsMessage['headers']>, reply: string | undefined) => {
    const stalled = reply || headers.get('Nats-Consumer-Stalled')
    if (stalled) jetStream.client.publish(stalled)
    if (headers.description !== 'Idle Heartbeat') return
    if (Number(headers.get('Nats-Last-Consumer')) !== consumed) lost()
    else if (Number(headers.get('Nats-Last-Stream')) > read) end({ cause: 'trimmed' })
  }
  const receive = ({ data, reply, headers }: NatsMessage) => {
    if (!feed.isOpen) return
    expectHeartbeat()
    if (headers?.code === 100) control(headers, reply)
    if (!reply?.startsWith('$JS.ACK.')) return
    const [position, count] = numbersIn(reply)
    if (count !== consumed + 1) return lost()
    if (position !== read + 1) return end({ cause: 'trimmed' })
    consumed = count
    read = position
    // Deliver all messages of one packet together.
    if (batch.push({ position, bytes: data }) === 1) queueMicrotask(flush)
  }

  const callback = (_error: Error | null, message: NatsMessage) => receive(message)
  const subscription = jetStream.client.subscribe(inbox, { callback })
  feed.onClose(() => {
    subscription.unsubscribe()
    timer?.cancel()
  })
  const target = { deliver_subject: inbox, opt_start_seq: read + 1 }
  const request = { stream_name: stream, config: { ...CONSUMER, ...target } }
  await jetStream.ask(`CONSUMER.CREATE.${stream}`, request)
  expectHeartbeat()
}

/**
 * The numbers of a message in the stream and in the consumer:
 * $JS.ACK.<stream>.<consumer>.<tries>.<number in the stream>.<number in the consumer>.…, with a domain
 * and an account before the stream if there are more than nine parts.
 */
function numbersIn(reply: string): [position: number, count: number] {
  const parts = reply.split('.')
  const first = parts.length > 9 ? 7 : 5
  return [Number(parts[first]), Number(parts[first + 1])]
}
