import { CLOSE, DONE, PROTOCOL, type Welcome } from './protocol.ts'
import type { ServerConnectionOptions, StreamSocket } from './server-connection.ts'
import { messagesIn } from './server-messages.ts'

const MESSAGE_BYTES = 1 << 20
/** A reading of any key, to learn whether the server reaches its engine. */
const READING = 1
const QUESTION = JSON.stringify([[READING, 'read', { key: 'leasehold', limit: 1 }]])

/**
 * Tries whether a server works, on a stream of its own: it must answer a reading. Another client id
 * is used, so that the stream in use is not superseded if both addresses lead to one server.
 *
 * Calls `done` once, with the id of the server process, or `undefined` if it does not work. Returns a
 * function that ends the trial without calling it.
 */
export function tryServer(
  url: URL,
  { socket: open, clock, random, timeout, silence, headers, tls }: ServerConnectionOptions,
  done: (server: string | undefined) => void,
): () => void {
  let server: string | undefined
  let over = false
  const end = (works: boolean) => {
    if (over) return
    over = true
    timer.cancel()
    socket.close(CLOSE.done, 'the server was only tried')
    done(works ? server : undefined)
  }
  const timer = clock.timer(clock.now() + timeout, () => end(false))
  const socket: StreamSocket = open(
    url,
    {
      ...{ clock, random, headers, tls, timeout, silence },
      messageBytes: MESSAGE_BYTES,
      keepAlive: false,
    },
    {
      opened: () => socket.send(JSON.stringify([['hello', PROTOCOL, { client: random.id() }]])),
      text: (text) => {
        for (const [first, second, third] of messagesIn(text) ?? []) {
          if (first === 'welcome') {
            server = (third as Partial<Welcome>).server
            socket.send(QUESTION)
          } else if (first === READING) {
            // A client without the right to read learns that here, which is an answer too.
            end(second === DONE || third === 'forbidden')
          } else end(false)
        }
      },
      drained: () => {},
      closed: () => end(false),
    },
  )
  return () => {
    done = () => {}
    end(false)
  }
}
