import { LeaseholdError } from '../../port/index.ts'
import { connectionOf, needsSingle, type RedisClient } from '../../stores/redis/client.ts'

type Value = string | Uint8Array
export type Send = (...command: Value[]) => Promise<unknown>

/** What is asked of a client of `ioredis`, which has `callBuffer`, or else of `redis`. */
interface SingleClient {
  callBuffer?(...command: (string | Buffer)[]): Promise<unknown>
  sendCommand(command: (string | Buffer)[], options: object): Promise<unknown>
  duplicate(): SingleClient
  on(event: string, hear: () => void): void
  connect(): Promise<unknown>
  disconnect(): void
  destroy(): void
}

/** Strings of any kind come as buffers: `$` is the type of bulk strings. */
const AS_BUFFERS = { typeMapping: { ['$'.charCodeAt(0)]: Buffer } }

/** One way to send commands, whatever library the caller uses. Strings in answers are buffers. */
export function commandsOf(client: RedisClient, replicas: number) {
  // WAIT is for what one connection wrote.
  const { wait } = connectionOf(client)
  if (replicas > 0 && !wait) throw needsSingle(replicas)
  const isSingle = 'sendCommand' in client && !('masters' in client) && !('acquire' in client)
  if (!isSingle && !('callBuffer' in client)) {
    throw new LeaseholdError(
      'unsupported',
      'the log form needs a client with one connection: give one of ioredis, or of createClient() of redis',
    )
  }
  const single = client as unknown as SingleClient
  return { send: sendBy(single), wait, duplicate: () => duplicate(single) }
}

export type Commands = ReturnType<typeof commandsOf>

/** Opens a connection of its own, for calls that block. */
async function duplicate(client: SingleClient) {
  const second = client.duplicate()
  // Nobody listening to it would end the process. What it means is found by calls that fail.
  second.on('error', () => {})
  const connectsItself = second.callBuffer !== undefined
  if (!connectsItself) await second.connect()
  const close = () => (connectsItself ? second.disconnect() : second.destroy())
  return { send: sendBy(second), close }
}

function sendBy(client: SingleClient): Send {
  return (...values) => {
    // The libraries take bytes as a Buffer only.
    const command = values.map((value) =>
      typeof value === 'string' ? value : Buffer.from(value.buffer, value.byteOffset, value.length),
    )
    return client.callBuffer?.(...command) ?? client.sendCommand(command, AS_BUFFERS)
  }
}
