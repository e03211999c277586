import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from 'leasehold/port'

/** The most unanswered requests on one HTTP connection. */
const UNANSWERED_MAX = 1000
/** How long responses may queue behind one that is not ready. */
const BLOCKED_MS = 2000

/**
 * Limits HTTP pipelining, where a client sends requests before earlier ones are answered. Responses
 * must leave in order, so they queue behind a request that waits. Node then stops reading and does
 * not notice that the client has gone. When it does notice, it emits `close` only on the response
 * being sent, so the requests behind it would keep running for nobody.
 *
 * The server therefore closes a connection with too many unanswered requests, or with responses that
 * queue too long. Closing a connection emits `close` on all its responses.
 */
export function boundPipelines(server: Server, clock: Clock): void {
  const pipelines = new WeakMap<Socket, Set<ServerResponse>>()
  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const unanswered = pipelines.get(socket) ?? begin(socket)
    pipelines.set(socket, unanswered.add(response))
    response.once('close', () => unanswered.delete(response))
    if (unanswered.size > UNANSWERED_MAX) socket.destroy()
    else if (unanswered.size > 1 && socket.isPaused()) watchFirst(clock, socket, unanswered)
  })
}

function begin(socket: Socket): Set<ServerResponse> {
  const unanswered = new Set<ServerResponse>()
  socket.once('close', () => {
    for (const response of unanswered) response.emit('close')
  })
  return unanswered
}

/** Closes the connection if its first response is still unsent after `BLOCKED_MS`. */
function watchFirst(clock: Clock, socket: Socket, unanswered: ReadonlySet<ServerResponse>): void {
  const [first] = unanswered
  clock.timer(clock.now() + BLOCKED_MS, () => {
    if (first !== undefined && unanswered.has(first) && socket.isPaused()) socket.destroy()
  })
}
