import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type Clock, isLeaseholdError, type LeaseId } from 'leasehold/port'
import { CLOSE } from 'leasehold/remote'
import { type WebSocket, WebSocketServer } from 'ws'
import {
  type Access,
  type Admission,
  allowsOthers,
  credentialsOf,
  isForeign,
  refuseUpgrade,
} from '../access/index.ts'
import { type FeedMessage, type FeedRequest, FOLLOWED_MAX } from './feed-messages.ts'
import type { LiveMetrics, Viewer } from './live-metrics.ts'

export const FEED_PATH = '/dashboard/feed'
const VIEWERS_MAX = 1000
const FRAME_BYTES = 64 * 1024
/** A page with more unread bytes is disconnected; it reconnects when it is visible again. */
const BUFFERED_MAX = 1 << 20
/** How long a page has to read the reason for a disconnect. */
const CLOSE_MS = 1000

/**
 * The feed of the dashboard: one WebSocket per open page. It carries what the store's stream does
 * not: the server's metrics, and the heartbeats of the leases that the page shows.
 */
export class Feed {
  readonly #access: Access
  readonly #liveMetrics: LiveMetrics
  readonly #clock: Clock
  readonly #open = new Set<WebSocket>()
  readonly #sockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: FRAME_BYTES,
  })
  #closing = false

  constructor(access: Access, liveMetrics: LiveMetrics, clock: Clock) {
    this.#access = access
    this.#liveMetrics = liveMetrics
    this.#clock = clock
  }

  /** Handles an upgrade of the feed. Returns false for any other path. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
    if (request.url?.split('?', 1)[0] !== FEED_PATH) return false
    socket.on('error', () => socket.destroy())
    const admission = this.#admit(request)
    if (typeof admission === 'string') {
      refuseUpgrade(socket, admission)
      return true
    }
    socket.once('close', () => admission.leave())
    this.#sockets.handleUpgrade(request, socket, head, (webSocket) =>
      this.#begin(webSocket, admission),
    )
    return true
  }

  close(): void {
    this.#closing = true
    for (const socket of this.#open) this.#end(socket, CLOSE.goingAway, 'the server is stopping')
  }

  #admit(request: IncomingMessage): Admission | string {
    if (isForeign(request.headers)) return '403 Forbidden'
    if (this.#closing || this.#open.size >= VIEWERS_MAX) return '503 Service Unavailable'
    try {
      const admission = this.#access.admit(credentialsOf(request))
      // The feed summarises all keys, so it needs the right to read all of them.
      if (allowsOthers(admission.principal.rights, 'read', '')) return admission
      admission.leave()
      return '403 Forbidden'
    } catch (error) {
      return isLeaseholdError(error, 'forbidden') ? '403 Forbidden' : '401 Unauthorized'
    }
  }

  #begin(socket: WebSocket, admission: Admission): void {
    const viewer: Viewer = {
      follows: new Set(),
      send: (message: FeedMessage) => {
        if (socket.bufferedAmount < BUFFERED_MAX) socket.send(JSON.stringify(message))
        else socket.terminate()
      },
    }
    this.#open.add(socket)
    admission.ended = ({ message }) =>
      this.#end(socket, CLOSE.unauthenticated, message.slice(0, 100))
    socket.on('error', () => socket.terminate())
    socket.on('message', (data: Buffer) => {
      const leases = parseLeases(String(data))
      if (leases === undefined) this.#end(socket, CLOSE.malformed, 'send { "leases": [] }')
      else viewer.follows = leases
    })
    socket.once('close', () => {
      this.#open.delete(socket)
      this.#liveMetrics.leave(viewer)
    })
    this.#liveMetrics.enter(viewer)
  }

  /** Terminates the socket after a while: the page may be asleep, or its machine gone. */
  #end(socket: WebSocket, code: number, reason: string): void {
    socket.close(code, reason)
    this.#clock.timer(this.#clock.now() + CLOSE_MS, () => socket.terminate())
  }
}

/** The leases to follow; `undefined` if the message is malformed. */
function parseLeases(json: string): ReadonlySet<LeaseId> | undefined {
  try {
    const { leases } = JSON.parse(json) as FeedRequest
    if (!Array.isArray(leases) || leases.length > FOLLOWED_MAX) return undefined
    return leases.every((lease) => typeof lease === 'string') ? new Set(leases) : undefined
  } catch {
    return undefined
  }
}
