import { connect } from 'node:net'
import type { Clock } from '../../../port/index.ts'
import { type Auth, Connection, type Socket } from './connection.ts'
import {
  type Access,
  addWatch,
  CODE,
  create,
  getChildren,
  isFault,
  multi,
  type Request,
  remove,
} from './requests.ts'
import { type Server, serversOf } from './servers.ts'

/** Starts a connection to a server. */
export type Connect = (server: Server) => Socket

/** Where the ensemble is, and how to connect to it. */
export interface EnsembleOptions {
  /** Such as `'zk1:2181,zk2:2181,zk3:2181'`. Tried one after the other. */
  readonly servers: string | readonly Server[]
  /** Makes a connection. For TLS: `({ host, port }) => tls.connect({ host, port, ca })`. */
  readonly connect?: Connect | undefined
  /** If given, only clients with the same authentication can use the nodes that are created. */
  readonly auth?: Auth | undefined
}

export interface ZookeeperClientOptions extends EnsembleOptions {
  /** How long to try to connect, in milliseconds. */
  readonly timeout: number
  readonly clock: Clock
}

/** How long one server may take to accept a connection; this much longer in each round. */
const CONNECT_MS = 1000
/** If there are others, a server that sends nothing for so long has failed. */
const SILENCE_MS = 2000
/** How many nodes one transaction removes. */
const DELETES = 500
/** The pause after all servers were tried. */
const REST_MS = 50

/** Receives the events of a watch. */
export interface Listener {
  created(path: string): void
  /** The last call: the connection was lost. */
  ended(error: Error): void
}

/**
 * A ZooKeeper client without ephemeral nodes and without sessions that outlive a connection. Calls go
 * to one server until it fails; later calls go to the next. A call that was sent is never sent again.
 *
 * The client libraries for Node have no persistent watches and do not notice a frozen server.
 */
export class ZookeeperClient {
  readonly access: Access
  readonly #options: ZookeeperClientOptions
  readonly #servers: readonly Server[]
  readonly #listeners = new Map<Listener, string>()
  #connection: Promise<Connection> | undefined
  #current: Connection | undefined
  #next = 0
  #closed = false

  constructor(options: ZookeeperClientOptions) {
    this.#options = options
    this.#servers = serversOf(options.servers)
    this.access = options.auth ? 'creator' : 'everyone'
  }

  /** Requests of one turn of the event loop go to one server, which carries them out in order. */
  async call<Answer>(request: Request<Answer>): Promise<Answer> {
    const connection = await this.#connected()
    return connection.call(request)
  }

  /** The answer, or `undefined` if the request was refused with one of these codes. */
  async unless<Answer>(request: Request<Answer>, ...codes: number[]): Promise<Answer | undefined> {
    try {
      return await this.call(request)
    } catch (error) {
      if (isFault(error, ...codes)) return undefined
      throw error
    }
  }

  /** Creates an empty node if it does not exist. */
  async ensure(path: string): Promise<void> {
    await this.unless(create(path, new Uint8Array(0), this.access), CODE.nodeExists)
  }

  /** Creates a node and its parents if they do not exist. */
  async ensurePath(path: string): Promise<void> {
    const names = path.split('/')
    for (let depth = 2; depth <= names.length; depth++) {
      await this.ensure(names.slice(0, depth).join('/'))
    }
  }

  /** Removes the children for which `isOld` is true. Other clients may do so at the same time. */
  async removeChildren(path: string, isOld: (child: string) => boolean): Promise<void> {
    const names = (await this.unless(getChildren(path), CODE.noNode)) ?? []
    const old = names.map((name) => `${path}/${name}`).filter(isOld)
    for (let at = 0; at < old.length; at += DELETES) {
      const deletes = old.slice(at, at + DELETES).map((child) => remove(child))
      await this.unless(multi(deletes), CODE.noNode)
    }
  }

  /** Removes a node with all its children, including those that are created during the removal. */
  async removeWhole(path: string): Promise<void> {
    for (;;) {
      await this.removeChildren(path, () => true)
      try {
        await this.call(remove(path))
        return
      } catch (error) {
        if (isFault(error, CODE.noNode)) return
        if (!isFault(error, CODE.notEmpty)) throw error
      }
    }
  }

  /** Reports nodes that are created below a path from now on, until the connection is lost. */
  async watch(path: string, listener: Listener): Promise<void> {
    const connection = await this.#connected()
    this.#listeners.set(listener, path)
    await connection.call(addWatch(path))
  }

  unwatch(listener: Listener): void {
    this.#listeners.delete(listener)
  }

  /** Runs something after the answers that have already arrived. */
  defer(run: () => void): void {
    this.#options.clock.defer(run)
  }

  close(): void {
    this.#closed = true
    this.#listeners.clear()
    this.#current?.close()
  }

  #connected(): Promise<Connection> {
    if (this.#closed) return Promise.reject(new Error('the client is closed'))
    this.#connection ??= this.#connect()
    return this.#connection
  }

  /** Tries each server in turn until the timeout. */
  async #connect(): Promise<Connection> {
    const { clock, timeout } = this.#options
    const servers = this.#servers
    const silence = servers.length > 1 ? Math.min(SILENCE_MS, timeout) : timeout
    const deadline = clock.now() + timeout
    for (let tries = 0; ; tries++) {
      const round = 1 + Math.floor(tries / servers.length)
      const server = servers[this.#next++ % servers.length]!
      const connection = this.#open(server, Math.min(silence, CONNECT_MS * round))
      try {
        await connection.ready
        connection.silence = silence
        this.#current = connection
        if (this.#closed) connection.close()
        return connection
      } catch (error) {
        const rest = (tries + 1) % servers.length === 0 ? REST_MS : 0
        if (!this.#closed && clock.now() + rest < deadline) {
          await new Promise<void>((resolve) => clock.timer(clock.now() + rest, resolve, true))
          continue
        }
        this.#connection = undefined
        throw error
      }
    }
  }

  #open(server: Server, silence: number): Connection {
    const { auth, clock } = this.#options
    const socket = (this.#options.connect ?? connect)(server)
    const connection = new Connection({
      socket,
      auth,
      clock,
      silence,
      created: (path) => {
        for (const [listener, above] of this.#listeners) {
          if (path.startsWith(`${above}/`)) listener.created(path)
        }
      },
      closed: (error) => this.#lost(connection, error),
    })
    return connection
  }

  #lost(connection: Connection, error: Error): void {
    if (this.#current !== connection) return
    this.#current = undefined
    this.#connection = undefined
    const listeners = [...this.#listeners.keys()]
    this.#listeners.clear()
    for (const listener of listeners) listener.ended(error)
  }
}
