import { connect as connectByNet } from 'node:net'

/**
 * What is needed of a connection to a server: a socket of `node:net` or `node:tls` is one.
 *
 * ZooKeeper's protocol itself is spoken here, in `session.ts`. The client libraries that there are
 * for Node cannot leave a session without ending it, do not notice a server that is frozen, and
 * tell neither the number of a transaction nor of a node's version 0; all four are needed to say
 * the truth about a lease.
 */
export interface Socket {
  write(bytes: Buffer): unknown
  destroy(): unknown
  on(event: 'connect' | 'close', listener: () => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'data', listener: (bytes: Buffer) => void): unknown
  setNoDelay?(): unknown
  ref?(): unknown
  unref?(): unknown
}

export interface Server {
  readonly host: string
  readonly port: number
}

/** Begins to connect to a server; what it answers with has not been connected yet. */
export type Connect = (server: Server) => Socket

export const connectPlainly: Connect = ({ host, port }) => connectByNet({ host, port })

/** Who we are to the ensemble: the scheme `digest` takes `user:password`. */
export interface Auth {
  readonly scheme: string
  readonly credentials: string
}
