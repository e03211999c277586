import { LeaseholdError } from '../../port/index.ts'
import { connectionOf, needsSingle, type RedisClient } from '../../stores/redis/client.ts'

export type Value = string | Uint8Array

/** One way to send commands, whatever library the caller uses. Strings in answers are buffers. */
export interface Commands {
  send(...command: Value[]): Promise<unknown>
  /** WAIT for what this connection wrote; `undefined` if the client has many connections. */
  readonly wait: ((replicas: number, ms: number) => Promise<number>) | undefined
  /** Opens a connection of its own, for calls that block. */
  duplicate(): Promise<{ send: Commands['send']; close(): void }>
}

interface IoRedis {
  callBuffer(...command: (string | Buffer)[]): Promise<unknown>
  duplicate(): IoRedis & { on(event: string, hear: () => void): void; disconnect(): void }
}

interface NodeRedis {
  sendCommand(command: (string | Buffer)[], options: object): Promise<unknown>
  duplicate(): NodeRedis & {
    on(event: string, hear: () => void): void
    connect(): Promise<unknown>
    destroy(): void
  }
}

/** Strings of any kind come as buffers: `$` is the type of bulk strings. */
const AS_BUFFERS = { typeMapping: { ['$'.charCodeAt(0)]: Buffer } }

export function commandsOf(client: RedisClient, replicas: number): Commands {
  const { wait } = connectionOf(client)
  if (replicas > 0 && !wait) throw needsSingle(replicas)
  if ('callBuffer' in client) return ofIoRedis(client as unknown as IoRedis, wait)
  if ('sendCommand' in client && !('masters' in client) && !('acquire' in client)) {
    return ofNodeRedis(client as unknown as NodeRedis, wait)
  }
  throw new LeaseholdError(
    'unsupported',
    'the log form needs a client with one connection: give one of ioredis, or of createClient() of redis',
  )
}

function ofIoRedis(client: IoRedis, wait: Commands['wait']): Commands {
  return {
    send: (...command) => client.callBuffer(...command.map(wired)),
    wait,
    duplicate: async () => {
      const second = client.duplicate()
      // Nobody listening to it would end the process. What it means is found by calls that fail.
      second.on('error', () => {})
      return {
        send: (...command) => second.callBuffer(...command.map(wired)),
        close: () => second.disconnect(),
      }
    },
  }
}

function ofNodeRedis(client: NodeRedis, wait: Commands['wait']): Commands {
  return {
    send: (...command) => client.sendCommand(command.map(wired), AS_BUFFERS),
    wait,
    duplicate: async () => {
      const second = client.duplicate()
      second.on('error', () => {})
      await second.connect()
      return {
        send: (...command) => second.sendCommand(command.map(wired), AS_BUFFERS),
        close: () => second.destroy(),
      }
    },
  }
}

/** The libraries take bytes as a Buffer only. */
function wired(value: Value): string | Buffer {
  if (typeof value === 'string') return value
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
}
