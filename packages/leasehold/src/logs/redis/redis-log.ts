import type { LogEntry, LogPromises, Position } from '../../log/index.ts'
import { formatDuration, LeaseholdError } from '../../port/index.ts'
import type { Send } from '../../stores/redis/client.ts'
import type { Settings } from '../../stores/redis/options.ts'
import { inTime, type LogEngine } from '../engine-log.ts'
import type { Feed } from '../feeds/feed.ts'
import type { SnapshotParts } from '../snapshots.ts'
import type { Commands, SecondConnection } from './client.ts'
import { CREATE, LAST } from './scripts.ts'

/** How long a read blocks. Then the follower checks that the stream is still the same. */
const BLOCK_MS = 1000

/** The end of the stream: which stream it is, and the position of its last entry. */
interface End {
  readonly epoch: string
  readonly tail: Position
}

/** A log in a stream. All its keys share a hash slot, as a cluster requires. */
export class RedisLog implements LogEngine {
  readonly promises: LogPromises
  readonly parts: SnapshotParts
  readonly #commands: Commands
  readonly #settings: Settings
  readonly #key: string
  #epoch = ''

  constructor(commands: Commands, settings: Settings, promises: LogPromises) {
    this.promises = promises
    this.#commands = commands
    this.#settings = settings
    this.#key = `{${settings.namespace}}:entries`
    this.parts = partsIn(commands.send, `${this.#key}:snapshots`)
  }

  async open(): Promise<this> {
    this.#epoch = (await this.#ensure()).epoch
    return this
  }

  /** Never creates a stream, and fails if there is one with a higher epoch. */
  async append(entry: Uint8Array): Promise<Position> {
    const command = ['XADD', this.#key, 'NOMKSTREAM', `${this.#epoch}-*`, 'e'] as const
    const id = await this.#commands.send(...command, entry)
    if (id === null) throw new Error('the stream is gone')
    await this.#replicated(this.#commands.wait)
    return endOf(String(id)).tail
  }

  async follow(feed: Feed): Promise<void> {
    // Creates a lost stream again, with a new epoch. It then ends before all positions of the old one.
    const { epoch, tail } = await this.#ensure()
    const isOther = epoch !== this.#epoch
    this.#epoch = epoch
    if (isOther) feed.end({ cause: 'ahead', tail })
    else if (feed.continuesIn(0, tail)) {
      const second = await this.#commands.duplicate()
      feed.onClose(second.close)
      this.#run(feed, epoch, second).catch((error: unknown) => feed.interrupt(error))
    }
  }

  async tail(): Promise<Position> {
    const end = await this.#end()
    if (end?.epoch === this.#epoch) return end.tail
    throw new LeaseholdError('unknown-outcome', 'the stream was lost or replaced: follow again')
  }

  async trim(through: Position): Promise<void> {
    const least = Math.min(through, await this.tail()) + 1
    await this.#commands.send('XTRIM', this.#key, 'MINID', '=', `${this.#epoch}-${least}`)
  }

  /** Reads the stream on the second connection, until the feed is closed. */
  async #run(feed: Feed, epoch: string, { send, wait }: SecondConnection): Promise<void> {
    const { clock, timeout, replicas } = this.#settings
    const late = `Redis did not answer within ${timeout} ms: follow again`
    const read = (block: number) =>
      inTime(this.#read(send, epoch, feed.after, block), clock, timeout + block, late)
    for (let block = 0; feed.isOpen; block = BLOCK_MS) {
      const entries = await read(block)
      const [next] = entries
      if (next && replicas > 0) {
        // No replica may act on what a failover could lose. WAIT covers writes of this connection only.
        await inTime(send('SET', `${this.#key}:read`, ''), clock, timeout, late)
        await this.#replicated(wait)
      }
      // Positions have no gaps, so a missing entry was trimmed.
      if (next && next.position > feed.after + 1) feed.end({ cause: 'trimmed' })
      else feed.deliver(entries)
      if (next) continue
      const end = await inTime(this.#end(), clock, timeout, late)
      if (end?.epoch !== epoch) feed.end({ cause: 'ahead', tail: end?.tail ?? 0 })
      else if (feed.continuesIn(0, end.tail) && end.tail > feed.after) {
        if ((await read(0)).length === 0) feed.end({ cause: 'trimmed' })
      }
    }
  }

  /** Fulfilled when enough replicas have all earlier writes of this connection. */
  async #replicated(wait: Commands['wait']): Promise<void> {
    const { replicas, replicasTimeout, clock, timeout } = this.#settings
    if (replicas === 0) return
    const late = `Redis did not answer within ${timeout} ms: the entry may be in the log`
    const count = await inTime(
      wait!(replicas, replicasTimeout),
      clock,
      replicasTimeout + timeout,
      late,
    )
    if (count >= replicas) return
    const few = `the entry is in Redis, but only ${count} of ${replicas} replicas confirmed it within`
    const message = `${few} ${formatDuration(replicasTimeout)}: a failover might lose it`
    throw new LeaseholdError('unknown-outcome', message)
  }

  /** `undefined` if the stream was lost. */
  async #end(): Promise<End | undefined> {
    const id = String(await this.#commands.send('EVAL', LAST, '1', this.#key))
    if (id === 'none') return undefined
    if (/^\d+-\d+$/.test(id)) return endOf(id)
    const message = `the key ${this.#key} is a ${id}, not a stream: something else uses it. Use another namespace`
    throw new LeaseholdError('unsupported', message)
  }

  /** The next entries of this epoch, read on this connection. Blocks if `block` is not 0. */
  async #read(send: Send, epoch: string, after: Position, block: number): Promise<LogEntry[]> {
    const waits = block > 0 ? ['BLOCK', `${block}`] : []
    const from = ['STREAMS', this.#key, `${epoch}-${after}`]
    const reply = await send('XREAD', 'COUNT', '256', ...waits, ...from)
    if (reply === null) return []
    // A list of pairs, or a map with the newer protocol.
    const found: Found[] = Array.isArray(reply) ? reply[0][1] : Object.values(reply as object)[0]
    return found.flatMap(([id, fields]) => {
      const at = endOf(String(id))
      return at.epoch === epoch ? [{ position: at.tail, bytes: fields[1] }] : []
    })
  }

  async #ensure(): Promise<End> {
    const { namespace } = this.#settings
    const own = [this.#key, `${this.#key}:epoch`, `${this.#key}:snapshots`]
    await this.#commands.send('EVAL', CREATE, '4', ...own, `{${namespace}}:meta`, namespace)
    const end = await this.#end()
    if (end === undefined) throw new Error('the stream is gone')
    return end
  }
}

type Found = readonly [id: Buffer, fields: readonly [Buffer, Buffer]]

function endOf(id: string): End {
  const [epoch, position] = id.split('-')
  return { epoch: epoch!, tail: Number(position) }
}

function partsIn(send: Send, key: string): SnapshotParts {
  return {
    names: async () => ((await send('HKEYS', key)) as Buffer[]).map(String),
    put: (name, bytes) => send('HSET', key, name, bytes),
    get: async (name) => ((await send('HGET', key, name)) as Buffer | null) ?? undefined,
    remove: (name) => send('HDEL', key, name),
  }
}
