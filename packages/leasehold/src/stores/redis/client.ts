import { invalid, LeaseholdError, show } from '../../port/index.ts'
import type { Script } from './scripts/index.ts'

/** The parts of `ioredis` that are used: `Redis` (also with Sentinel) and `Cluster`. */
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

/** The parts of `redis` (node-redis) that are used: `createClient`, `createSentinel`, `createCluster`. */
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

/** The connection to Redis, for every client library. */
export interface Connection {
  /** Runs a script on a key: by its digest, or with its source if Redis does not know it. */
  run(script: Script, key: string, values: string[]): Promise<unknown>
  /** How many replicas have what this connection wrote; `undefined` if that cannot be asked. */
  readonly wait: ((replicas: number, ms: number) => Promise<number>) | undefined
  /** `undefined` if there are many connections, or for clients of an unknown kind. */
  readonly send: Send | undefined
  /** Opens a second connection, which receives messages until it is closed. */
  listen(listener: ConnectionListener): Listener
}

/** Receives the events of the second connection. */
export interface ConnectionListener {
  message(channel: string, text: string): void
  /** The connection broke: messages published now are not received. */
  down(): void
  /** The connection is back, with all subscriptions. */
  up(): void
}

export interface Listener {
  /** Rejected if it could not be opened; a library without a connection may try forever. */
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
 * On connecting, ioredis would send INFO on the second connection, which is an error after a
 * subscription. If its automatic resubscription fails, the rejection has no handler and ends the
 * process. Subscriptions before the connection is ready must be queued, even if the caller's
 * client does not queue calls.
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
      const [listener, detach] = detachable(given)
      const second = single ? client.duplicate(OVERRIDES) : client.duplicate()
      const channels = new Set<string>()
      second.on('message', (channel, text) => listener.message(channel!, text!))
      watchState(second, ['close'], listener, async () => {
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
          detach()
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
      const [listener, detach] = detachable(given)
      const second = client.duplicate()
      // One listener for all channels, given again on unsubscribing: the library calls each listener that
      // it was given, and would mistake a following subscription for the one that is just ending.
      const onMessage: NodeRedisListener = (text, channel) =>
        listener.message(String(channel), String(text))
      watchState(second, ['error', 'reconnecting', 'end'], listener, async () => {})
      return {
        opened: second.connect(),
        subscribe: async (channel) => void (await second.subscribe(channel, onMessage)),
        unsubscribe: async (channel) => void (await second.unsubscribe(channel, onMessage)),
        close: () => {
          detach()
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

/** All strings come as buffers: `$` is the type of bulk strings. */
const AS_BUFFERS = { typeMapping: { ['$'.charCodeAt(0)]: Buffer } }

/** The libraries accept bytes only as a Buffer. */
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
  ;(client as { on(event: string, listener: () => void): unknown }).on(event, () => lost.count++)
  return lost
}

/**
 * A library repeats unanswered calls after its connection broke, maybe to another server. What that
 * server says of its replicas is true, but not for what was written before.
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

/** A closed connection may report that later, when the next one already has a listener. */
function detachable(
  listener: ConnectionListener,
): [listener: ConnectionListener, detach: () => void] {
  let isOpen = true
  const ifAttached =
    <Args extends unknown[]>(notify: (...args: Args) => void) =>
    (...args: Args) => {
      if (isOpen) notify(...args)
    }
  const attached = {
    message: ifAttached(listener.message),
    down: ifAttached(listener.down),
    up: ifAttached(listener.up),
  }
  const detach = () => {
    isOpen = false
  }
  return [attached, detach]
}

/** Notifies the listener when the connection breaks, and when it is back with its subscriptions. */
function watchState(
  second: { on(event: string, listener: () => void): unknown },
  downs: readonly string[],
  listener: ConnectionListener,
  restore: () => Promise<void>,
): void {
  let isUp = true
  for (const event of downs) {
    second.on(event, () => {
      if (isUp) listener.down()
      isUp = false
    })
  }
  // Without a listener this event would end the process.
  if (!downs.includes('error')) second.on('error', () => {})
  second.on('ready', () => {
    if (isUp) return
    isUp = true
    // If that fails, the connection has broken again, and will be ready again.
    restore().then(
      () => listener.up(),
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
