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
  turnAway,
} from '../access/index.ts'
import type { Pulse, Viewer } from './pulse.ts'
import { type FeedMessage, type FeedRequest, FOLLOWED_MAX } from './sample.ts'

export const FEED_PATH = '/dashboard/feed'
const VIEWERS_MAX = 1000
const FRAME_BYTES = 64 * 1024
/** A page that lets so many bytes wait is not looked at: it comes back when it is. */
const BUFFERED_MAX = 1 << 20
/** How long a page has to read why it is being disconnected. */
const FAREWELL_MS = 1000

/**
 * The feed of the dashboard: one WebSocket for each page that is open. It tells what the store's own
 * stream does not: how the server does, and the heartbeats of the leases that the page shows.
 */
export class Feed {
  readonly #access: Access
  readonly #pulse: Pulse
  readonly #clock: Clock
  readonly #open = new Set<WebSocket>()
  readonly #sockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: FRAME_BYTES,
  })
  #closing = false

  constructor(access: Access, pulse: Pulse, clock: Clock) {
    this.#access = access
    this.#pulse = pulse
    this.#clock = clock
  }

  /** Takes the connection over where it is for the feed; answers whether it was. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
    if (request.url?.split('?', 1)[0] !== FEED_PATH) return false
    socket.on('error', () => socket.destroy())
    const admission = this.#admit(request)
    if (typeof admission === 'string') {
      turnAway(socket, admission)
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
    for (const socket of this.#open) this.#end(socket, CLOSE.goingAway, 'the server stops')
  }

  #admit(request: IncomingMessage): Admission | string {
    if (isForeign(request.headers)) return '403 Forbidden'
    if (this.#closing || this.#open.size >= VIEWERS_MAX) return '503 Service Unavailable'
    try {
      const admission = this.#access.admit(credentialsOf(request))
      // What it tells is of all keys together: whoever may read them all may hear it.
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
      tell: (message: FeedMessage) => {
        if (socket.bufferedAmount < BUFFERED_MAX) socket.send(JSON.stringify(message))
        else socket.terminate()
      },
    }
    this.#open.add(socket)
    admission.ended = ({ message }) =>
      this.#end(socket, CLOSE.unauthenticated, message.slice(0, 100))
    socket.on('error', () => socket.terminate())
    socket.on('message', (data: Buffer) => {
      const leases = followedIn(String(data))
      if (leases === undefined) this.#end(socket, CLOSE.malformed, 'send { "leases": [] }')
      else viewer.follows = leases
    })
    socket.once('close', () => {
      this.#open.delete(socket)
      this.#pulse.leave(viewer)
    })
    this.#pulse.enter(viewer)
  }

  /** A page that does not answer is not waited for: it may be asleep, or its machine gone. */
  #end(socket: WebSocket, code: number, reason: string): void {
    socket.close(code, reason)
    this.#clock.timer(this.#clock.now() + FAREWELL_MS, () => socket.terminate())
  }
}

/** The leases that are to be followed, or nothing where the text does not say. */
function followedIn(text: string): ReadonlySet<LeaseId> | undefined {
  try {
    const { leases } = JSON.parse(text) as FeedRequest
    if (!Array.isArray(leases) || leases.length > FOLLOWED_MAX) return undefined
    return leases.every((lease) => typeof lease === 'string') ? new Set(leases) : undefined
  } catch {
    return undefined
  }
}
