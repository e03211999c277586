/**
 * DNS answers per second, against a UDP echo in the same process and the same run, in many short
 * turns, so that other load on the machine affects both equally. The processor time per answer says
 * what one core can do, whatever else runs.
 */
import { fork } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { fileURLToPath } from 'node:url'
import { atLeast, row } from '../../../measure/rows.js'

const COUNT = 5000
const ROUNDS = 12
const WARM_UP = 4
/** Queries without an answer yet. More would overflow the buffer of a socket. */
const WINDOW = 32
const LOST_MS = 2000

const child = fork(fileURLToPath(new URL('./server.js', import.meta.url)), {
  stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
})
const ports = await new Promise<{ dns: number; echo: number }>((resolve) => {
  child.stdout!.once('data', (text) => resolve(JSON.parse(String(text))))
})
const used = () =>
  new Promise<number>((resolve) => {
    child.once('message', (time) => resolve(Number(time)))
    child.send('used')
  })

/** A query with EDNS for 4096 bytes, as HAProxy sends it. */
function queryOf(name: string, type: number): Buffer {
  const labels = name.split('.').map((label) => `${String.fromCharCode(label.length)}${label}`)
  return Buffer.concat([
    Buffer.from([0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1]),
    Buffer.from(`${labels.join('')}\0`, 'latin1'),
    Buffer.from([0, type, 0, 1, 0, 0, 41, 16, 0, 0, 0, 0, 0, 0, 0]),
  ])
}

/** Sends `COUNT` queries, `WINDOW` at a time. Returns the answers per second. */
function answersPerSecond(port: number, query: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = createSocket('udp4')
    const start = performance.now()
    let sent = 0
    let received = 0
    const send = () => {
      query.writeUInt16BE(sent++ & 0xffff, 0)
      socket.send(Buffer.from(query), port, '127.0.0.1')
    }
    const late = setTimeout(() => reject(new Error(`lost ${sent - received} answers`)), 60_000)
    let last = 0
    const watch = setInterval(() => {
      if (received === last) for (let at = 0; at < WINDOW; at++) send()
      last = received
    }, LOST_MS)
    socket.on('message', () => {
      received++
      if (received === COUNT) {
        clearTimeout(late)
        clearInterval(watch)
        socket.close()
        resolve((COUNT / (performance.now() - start)) * 1000)
      } else if (sent < COUNT) send()
    })
    for (let at = 0; at < WINDOW; at++) send()
  })
}

const ECHO = 'a UDP echo'
const LOADS: Record<string, { readonly port: number; readonly query: Buffer }> = {
  [ECHO]: { port: ports.echo, query: queryOf('few.tag.web.leasehold', 33) },
  'SRV of 3 instances': { port: ports.dns, query: queryOf('few.tag.web.leasehold', 33) },
  'SRV of 40 instances': { port: ports.dns, query: queryOf('web.leasehold', 33) },
  'A of one instance': { port: ports.dns, query: queryOf('i-7.instance.web.leasehold', 1) },
  'a name that does not exist': { port: ports.dns, query: queryOf('other.leasehold', 1) },
}

interface Turn {
  readonly rate: number
  /** What one core would answer per second, by the processor time that the process used. */
  readonly perCore: number
}

const turns = new Map<string, Turn[]>()
for (let round = -WARM_UP; round < ROUNDS; round++) {
  for (const [name, { port, query }] of Object.entries(LOADS)) {
    const before = await used()
    const rate = await answersPerSecond(port, query)
    const perCore = (COUNT / ((await used()) - before)) * 1e6
    if (round >= 0) turns.set(name, [...(turns.get(name) ?? []), { rate, perCore }])
  }
}
child.disconnect()

const rows = [...turns].flatMap(([name, found]) => [
  row(
    `DNS: ${name}`,
    'answers/s',
    found.map(({ rate }) => rate),
  ),
  row(
    `DNS: ${name}, one core by processor time`,
    'answers/s',
    found.map(({ perCore }) => perCore),
    ...(name === ECHO ? [] : [atLeast(20_000)]),
  ),
])
console.log(JSON.stringify(rows))
