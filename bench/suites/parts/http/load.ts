import { connect, type Socket } from 'node:net'

const CONNECTIONS = 64

/** One request as bytes, without a body. */
export function requestText(method: string, path: string): string {
  const length = method === 'GET' ? '' : 'content-length: 0\r\n'
  return `${method} ${path} HTTP/1.1\r\nhost: localhost\r\n${length}\r\n`
}

/**
 * Answers per second, with one request in flight on each of 64 connections. `next` makes the next
 * request of a connection from the previous answer. It must be cheap, because it shares the
 * machine.
 */
export async function answersPerSecond(
  url: string,
  count: number,
  next: (connection: number, answer: string) => string,
): Promise<number> {
  const { port, hostname } = new URL(url)
  const sockets = Array.from({ length: CONNECTIONS }, () => connect(Number(port), hostname))
  await Promise.all(
    sockets.map((socket) => new Promise((resolve) => socket.on('connect', resolve))),
  )
  let left = count
  const start = performance.now()
  await Promise.all(
    sockets.map((socket, at) =>
      run(socket, (answer) => (left-- > 0 ? next(at, answer) : undefined)),
    ),
  )
  const rate = (count / (performance.now() - start)) * 1000
  for (const socket of sockets) socket.destroy()
  return rate
}

function run(socket: Socket, next: (answer: string) => string | undefined): Promise<void> {
  socket.setNoDelay(true)
  socket.setEncoding('latin1')
  return new Promise((resolve, reject) => {
    let text = ''
    const send = (answer: string) => {
      const request = next(answer)
      if (request === undefined) resolve()
      else socket.write(request)
    }
    socket.on('error', reject)
    socket.on('data', (chunk: string) => {
      text += chunk
      const head = text.indexOf('\r\n\r\n')
      if (head < 0) return
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1])
      if (text.length < head + 4 + length) return
      if (!text.startsWith('HTTP/1.1 20')) return reject(new Error(text))
      const body = text.slice(head + 4)
      text = ''
      send(body)
    })
    send('')
  })
}
