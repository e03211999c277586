/**
 * The HTTP API against an empty handler in the same framework, in one run of many short turns, so
 * that other load on the machine affects both equally. Besides the rate, it measures the processor
 * time of the server per request, which does not depend on other load.
 */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { atLeast, row } from '../../../measure/rows.js'
import { answersPerSecond, requestText } from './load.js'

const COUNT = 3000
const ROUNDS = 12
const WARM_UP = 4

const child = fork(fileURLToPath(new URL('./server.js', import.meta.url)), {
  stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
})
const { api, empty } = await new Promise<{ api: string; empty: string }>((resolve) => {
  child.stdout!.once('data', (text) => resolve(JSON.parse(String(text))))
})

/** Increases, so that no turn finds a lock that an earlier turn left behind. */
let turn = 0
const part = (answer: string, name: string) => new RegExp(`"${name}":"([^"]*)"`).exec(answer)?.[1]

/** Locks a key and then requests it repeatedly. */
const withLock = (method: string) => (at: number, answer: string) => {
  const lease = part(answer, 'lease')
  if (lease === undefined)
    return requestText('POST', `/v1/locks/jobs/${turn}-${at}?ttl=1h&holder=me`)
  return requestText(method, `/v1/locks/${part(answer, 'key')}?lease=${lease}`)
}

const EMPTY = 'an empty handler'
const LOADS: Record<string, (at: number, answer: string) => string> = {
  [EMPTY]: (at) => requestText('POST', `/empty?ttl=30s&holder=bench&key=${at}`),
  'take and release': withLock('DELETE'),
  keep: withLock('PUT'),
  'read a key': (at) => requestText('GET', `/v1/keys/jobs/import-${at}`),
}

interface Turn {
  readonly rate: number
  /** The server's processor time per request, in microseconds. */
  readonly cost: number
}

const used = () =>
  new Promise<number>((resolve) => {
    child.once('message', (time) => resolve(Number(time)))
    child.send('used')
  })

const turns = new Map<string, Turn[]>()
for (let round = -WARM_UP; round < ROUNDS; round++) {
  for (const [name, next] of Object.entries(LOADS)) {
    turn++
    const before = await used()
    const rate = await answersPerSecond(name === EMPTY ? empty : api, COUNT, next)
    const cost = ((await used()) - before) / COUNT
    if (round >= 0) turns.set(name, [...(turns.get(name) ?? []), { rate, cost }])
  }
}
child.disconnect()

const base = turns.get(EMPTY)!
const rows = [...turns].flatMap(([name, found]) => [
  row(
    `HTTP: ${name}`,
    'requests/s',
    found.map(({ rate }) => rate),
  ),
  row(
    `HTTP: ${name}, server`,
    'µs/request',
    found.map(({ cost }) => cost),
  ),
])
const against = [...turns].slice(1).flatMap(([name, found]) => {
  const rates = found.map(({ rate }, at) => rate / base[at]!.rate)
  const costs = found.map(({ cost }, at) => base[at]!.cost / cost)
  return [
    row(`HTTP: ${name} / an empty handler`, 'x', rates, atLeast(0.6)),
    row(`HTTP: ${name} / an empty handler, by processor time`, 'x', costs, atLeast(0.6)),
  ]
})
console.log(JSON.stringify([...rows, ...against]))
