import { invalid, LeaseholdError, show } from '../../port/index.ts'
import type { Script } from './scripts/index.ts'

/** What is asked of `ioredis`: its `Redis` (also one that goes by Sentinel) and its `Cluster`. */
export interface IoRedisClient {
  eval(script: string, keyCount: number, ...keysAndValues: string[]): Promise<unknown>
  evalsha(digest: string, keyCount: number, ...keysAndValues: string[]): Promise<unknown>
  wait?(replicas: number, ms: number): Promise<number>
  callBuffer?(...command: (string | Buffer)[]): Promise<unknown>
  duplicate(overrides?: object): IoRedisSubscriber
  readonly isCluster?: boolean
}

interface IoRedisSubscriber {
  subscribe(...channels: string[]): Promise<unknown>
  unsubscribe(...channels: string[]): Promise<unknown>
  on(event: string, listener: (...details: string[]) => void): unknown
  disconnect(): void
}

/** What is asked of `redis` (node-redis): `createClient`, `createSentinel` and `createCluster`. */
export interface NodeRedisClient {
  eval(script: string, options: ScriptArguments): Promise<unknown>
  evalSha(digest: string, options: ScriptArguments): Promise<unknown>
  duplicate(): NodeRedisSubscriber
}

interface ScriptArguments {
  keys: string[]
  arguments: string[]
}

type NodeRedisListener = (message: unknown, channel: unknown) => void

interface NodeRedisSubscriber {
  readonly isOpen: boolean
  connect(): Promise<unknown>
  subscribe(channel: string, listener: NodeRedisListener): Promise<unknown>
  unsubscribe(channel: string, listener: NodeRedisListener): Promise<unknown>
  on(event: string, listener: (...details: string[]) => void): unknown
  destroy(): unknown
}

/** Sends a command. Strings in the answer are buffers. */
export type Send = (...command: (string | Uint8Array)[]) => Promise<unknown>

export type RedisClient = IoRedisClient | NodeRedisClient

/** One way to speak to Redis, whatever library the caller uses. */
export interface Connection {
  /** Runs a script on a key: by its digest, or with its text where Redis does not know it. */
  run(script: Script, key: string, values: string[]): Promise<unknown>
  /** How many replicas have what this connection wrote; `undefined` where that cannot be asked. */
  readonly wait: ((replicas: number, ms: number) => Promise<number>) | undefined
  /** `undefined` where there are many connections, and for clients of which it is not known. */
  readonly send: Send | undefined
  /** Opens a second connection, on which messages are heard until it is closed. */
  listen(ear: ConnectionEar): Listener
}

/** What is heard on the second connection. */
export interface ConnectionEar {
  message(channel: string, text: string): void
  /** The connection broke: what is published now is not heard. */
  down(): void
  /** It is there again, with all that was subscribed to. */
  up(): void
}

export interface Listener {
  /** Rejected where it could not be made; a library without a connection may try for ever. */
  readonly opened: Promise<unknown>
  subscribe(channel: string): Promise<void>
  unsubscribe(channel: string): Promise<void>
  close(): void
}

export function connectionOf(client: RedisClient): Connection {
  const methods = client as Partial<IoRedisClient & NodeRedisClient> | undefined
  if (typeof methods?.duplicate === 'function') {
    if (typeof methods.evalSha === 'function') return nodeRedis(client as NodeRedisClient)
    if (typeof methods.evalsha === 'function') return ioRedis(client as IoRedisClient)
  }
  throw invalid(
    `client is ${show(client)}: give a client of ioredis (new Redis(…)) or of redis (createClient(…))`,
  )
}

/**
 * The second connection of ioredis would ask INFO when it is connected, which is an error once
 * something was subscribed to; and what it subscribes to again by itself, nobody is told of when it
 * fails, so that it ends the process. What is subscribed to before it is connected must be kept for
 * then, even where the caller's own calls are not.
 */
const OVERRIDES = { enableReadyCheck: false, autoResubscribe: false, enableOfflineQueue: true }

function ioRedis(client: IoRedisClient): Connection {
  const single = client.isCluster !== true && typeof client.wait === 'function'
  return {
    run: (script, key, values) =>
      orByText(
        () => client.evalsha(script.digest, 1, key, ...values),
        () => client.eval(script.text, 1, key, ...values),
      ),
    wait: single
      ? (replicas, ms) => unbroken(client, 'close', () => client.wait!(replicas, ms))
      : undefined,
    send: client.callBuffer && ((...command) => client.callBuffer!(...command.map(wired))),
    listen: (given) => {
      const [ear, cover] = coverable(given)
      const second = single ? client.duplicate(OVERRIDES) : client.duplicate()
      const channels = new Set<string>()
      second.on('message', (channel, text) => ear.message(channel!, text!))
      watchState(second, ['close'], ear, async () => {
        if (single && channels.size > 0) await second.subscribe(...channels)
      })
      return {
        opened: Promise.resolve(),
        subscribe: async (channel) => {
          channels.add(channel)
          await second.subscribe(channel)
        },
        unsubscribe: async (channel) => {
          channels.delete(channel)
          await second.unsubscribe(channel)
        },
        close: () => {
          cover()
          second.disconnect()
        },
      }
    },
  }
}

function nodeRedis(client: NodeRedisClient): Connection {
  // A cluster and a pool have many connections, and WAIT is about one.
  const { wait } = client as { wait?: (replicas: number, ms: number) => Promise<number> }
  const single = !('masters' in client) && !('acquire' in client) && wait !== undefined
  return {
    run: (script, key, values) => {
      const options = { keys: [key], arguments: values }
      return orByText(
        () => client.evalSha(script.digest, options),
        () => client.eval(script.text, options),
      )
    },
    wait: single
      ? (replicas, ms) => unbroken(client, 'reconnecting', () => wait.call(client, replicas, ms))
      : undefined,
    send: single
      ? (...command) => (client as unknown as Raw).sendCommand(command.map(wired), AS_BUFFERS)
      : undefined,
    listen: (given) => {
      const [ear, cover] = coverable(given)
      const second = client.duplicate()
      // One for all, and named when it goes: the library calls each that it was given, and would
      // take a subscription that follows at once for the one that is just ending.
      const hear: NodeRedisListener = (text, channel) => ear.message(String(channel), String(text))
      watchState(second, ['error', 'reconnecting', 'end'], ear, async () => {})
      return {
        opened: second.connect(),
        subscribe: async (channel) => void (await second.subscribe(channel, hear)),
        unsubscribe: async (channel) => void (await second.unsubscribe(channel, hear)),
        close: () => {
          cover()
          if (second.isOpen) second.destroy()
        },
      }
    },
  }
}

/** What a node-redis client with one connection has. */
interface Raw {
  sendCommand(command: (string | Buffer)[], options: object): Promise<unknown>
}

/** Strings of any kind come as buffers: `$` is the type of bulk strings. */
const AS_BUFFERS = { typeMapping: { ['$'.charCodeAt(0)]: Buffer } }

/** The libraries take bytes as a Buffer only. */
function wired(value: string | Uint8Array): string | Buffer {
  if (typeof value === 'string') return value
  return Buffer.from(value.buffer, value.byteOffset, value.length)
}

/** How often each client that was asked to WAIT has lost its connection since. */
const losses = new WeakMap<object, { count: number }>()

function lossesOf(client: object, event: string): { readonly count: number } {
  const known = losses.get(client)
  if (known) return known
  const lost = { count: 0 }
  losses.set(client, lost)
  ;(client as { on(event: string, hear: () => void): unknown }).on(event, () => lost.count++)
  return lost
}

/**
 * A library sends again what was not answered when its connection broke, maybe to another server: what
 * that one says of its replicas is true, but not of what was written before.
 */
async function unbroken(
  client: object,
  event: string,
  wait: () => Promise<number>,
): Promise<number> {
  const lost = lossesOf(client, event)
  const before = lost.count
  const count = await wait()
  if (lost.count === before) return count
  throw new Error('the connection broke before the replicas were known to have it')
}

/** A connection that was closed says so later, when somebody may already listen on the next. */
function coverable(ear: ConnectionEar): [ear: ConnectionEar, cover: () => void] {
  let isOpen = true
  const unlessCovered =
    <Heard extends unknown[]>(tell: (...heard: Heard) => void) =>
    (...heard: Heard) => {
      if (isOpen) tell(...heard)
    }
  const covered = {
    message: unlessCovered(ear.message),
    down: unlessCovered(ear.down),
    up: unlessCovered(ear.up),
  }
  const cover = () => {
    isOpen = false
  }
  return [covered, cover]
}

/** Tells the ear when the connection breaks, and when it is back with what was subscribed to. */
function watchState(
  second: { on(event: string, listener: () => void): unknown },
  downs: readonly string[],
  ear: ConnectionEar,
  restore: () => Promise<void>,
): void {
  let isUp = true
  for (const event of downs) {
    second.on(event, () => {
      if (isUp) ear.down()
      isUp = false
    })
  }
  // Nobody listening to it would end the process.
  if (!downs.includes('error')) second.on('error', () => {})
  second.on('ready', () => {
    if (isUp) return
    isUp = true
    // Where that fails the connection has broken again, and will be ready again.
    restore().then(
      () => ear.up(),
      () => {},
    )
  })
}

async function orByText(
  byDigest: () => Promise<unknown>,
  byText: () => Promise<unknown>,
): Promise<unknown> {
  try {
    return await byDigest()
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
  }
  return byText()
}

export function needsSingle(replicas: number): LeaseholdError {
  return new LeaseholdError(
    'unsupported',
    `replicas is ${replicas}, but WAIT counts what one connection has written, and a cluster or a pool has many: leave it out, or give a client with one connection`,
  )
}
