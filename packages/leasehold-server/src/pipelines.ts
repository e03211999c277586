import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from 'leasehold/port'

/** Requests of one HTTP connection that may be unanswered at a time. */
const UNANSWERED_MAX = 1000
/** How long answers may pile up behind one that is not ready. */
const BLOCKED_MS = 2000

/**
 * Bounds HTTP pipelining: requests that are sent before earlier ones of the same connection are
 * answered. Two things go wrong with it otherwise. Answers must leave in order, so those behind a
 * request that waits pile up; Node then stops reading, and does not notice that the client has gone.
 * And when it has, Node tells only the response that is being sent: whatever waits behind it would
 * go on for nobody.
 *
 * So a connection on which too much is unanswered, or for too long, is closed; and closing one
 * reaches all its responses.
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

/** Closes the connection if the first of its responses is still the first after a while. */
function watchFirst(clock: Clock, socket: Socket, unanswered: ReadonlySet<ServerResponse>): void {
  const [first] = unanswered
  clock.timer(clock.now() + BLOCKED_MS, () => {
    if (first !== undefined && unanswered.has(first) && socket.isPaused()) socket.destroy()
  })
}
