import type { LogEntry, Position } from '../../log/index.ts'
import { LeaseholdError } from '../../port/index.ts'
import type { SnapshotParts } from '../snapshots.ts'
import type { Commands } from './client.ts'

/**
 * Entries have the ids `<epoch>-<position>`. A stream that was lost begins again with a higher epoch,
 * so nobody takes the new one for the old. It begins behind the newest snapshot, if there is one.
 * Answers with the last id, or with the type of the key if it is no stream.
 */
const OPEN = `#!lua
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'none' then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local epoch = math.max(now, (tonumber(redis.call('GET', KEYS[2])) or 0) + 1)
  local position = 0
  for _, name in ipairs(redis.call('HKEYS', KEYS[3])) do
    local digits = string.match(name, '^(%d+)%.manifest$')
    if digits then position = math.max(position, tonumber(digits)) end
  end
  redis.call('SET', KEYS[2], string.format('%.0f', epoch))
  redis.call('XADD', KEYS[1], string.format('%.0f-%.0f', epoch, position), 'leasehold', '1')
elseif kind ~= 'stream' then
  return kind
end
local about = redis.call('XINFO', 'STREAM', KEYS[1])
for at = 1, #about, 2 do
  if about[at] == 'last-generated-id' then return about[at + 1] end
end`

/** The last id, or an empty string if there is no stream. */
const LAST = `#!lua flags=no-writes
if redis.call('EXISTS', KEYS[1]) == 0 then return '' end
local about = redis.call('XINFO', 'STREAM', KEYS[1])
for at = 1, #about, 2 do
  if about[at] == 'last-generated-id' then return about[at + 1] end
end`

/** The end of the stream: which stream it is, and the position of its last entry. */
export interface End {
  readonly epoch: string
  readonly tail: Position
}

/** The commands on the keys of one log. They share a hash slot, as a cluster wants it. */
export class Stream {
  readonly #commands: Commands
  readonly #key: string

  constructor(commands: Commands, namespace: string) {
    this.#commands = commands
    this.#key = `{${namespace}}:log`
  }

  /** Creates the stream if there is none. */
  async open(): Promise<End> {
    const keys = [this.#key, `${this.#key}:epoch`, `${this.#key}:snapshots`]
    const id = String(await this.#commands.send('EVAL', OPEN, '3', ...keys))
    if (/^\d+-\d+$/.test(id)) return endOf(id)
    throw new LeaseholdError(
      'unsupported',
      `the key ${this.#key} is a ${id} of something else: use another namespace`,
    )
  }

  /** `undefined` if the stream was lost. */
  async end(): Promise<End | undefined> {
    const id = String(await this.#commands.send('EVAL', LAST, '1', this.#key))
    return id === '' ? undefined : endOf(id)
  }

  /** Never creates a stream, and fails if there is one with a higher epoch. */
  async append(epoch: string, entry: Uint8Array): Promise<Position> {
    const command = ['XADD', this.#key, 'NOMKSTREAM', `${epoch}-*`, 'e'] as const
    const id = await this.#commands.send(...command, entry)
    if (id === null) throw new Error('the stream is gone')
    return endOf(String(id)).tail
  }

  async trim({ epoch, tail }: End, through: Position): Promise<void> {
    const least = `${epoch}-${Math.min(through, tail) + 1}`
    await this.#commands.send('XTRIM', this.#key, 'MINID', '=', least)
  }

  /** The next entries. Waits for them if `block` is not 0. */
  async read(
    send: Commands['send'],
    epoch: string,
    after: Position,
    block: number,
  ): Promise<LogEntry[]> {
    const waits = block > 0 ? ['BLOCK', `${block}`] : []
    const from = ['STREAMS', this.#key, `${epoch}-${after}`]
    const reply = await send('XREAD', 'COUNT', '256', ...waits, ...from)
    if (reply === null) return []
    // A list of pairs, or a map with the newer protocol.
    const found = (
      Array.isArray(reply) ? reply[0][1] : Object.values(reply as object)[0]
    ) as Found[]
    return found.map(([id, fields]) => ({ position: endOf(String(id)).tail, bytes: fields[1] }))
  }

  get parts(): SnapshotParts {
    const { send } = this.#commands
    const key = `${this.#key}:snapshots`
    return {
      names: async () => ((await send('HKEYS', key)) as Buffer[]).map(String),
      put: (name, bytes) => send('HSET', key, name, bytes),
      get: async (name) => ((await send('HGET', key, name)) as Buffer | null) ?? undefined,
      remove: (names) => send('HDEL', key, ...names),
    }
  }
}

type Found = readonly [id: Buffer, fields: readonly [Buffer, Buffer]]

function endOf(id: string): End {
  const [epoch, position] = id.split('-')
  return { epoch: epoch!, tail: Number(position) }
}
