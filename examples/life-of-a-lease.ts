// Run it: npm run build && node examples/dist/life-of-a-lease.js
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { fileStore } from 'leasehold/file'
import type { Event, Token } from 'leasehold/port'
import { lendStore } from './life-of-a-lease/store-over-ipc.ts'

/**
 * The life of a lease, with real processes. This process owns a durable store in a temporary
 * folder. Two workers want the same key. The first gets it, keeps it by heartbeats, and is killed
 * with SIGKILL, so that nobody releases anything. Its lease expires, and the key passes to the
 * second with a higher token. A write that the first one sent before it died arrives late, and is
 * refused.
 */
const KEY = 'reports/nightly'
const TTL_MS = 3000

type Name = 'alice' | 'bob'

const COLOUR = { store: 36, alice: 33, bob: 32, report: 35 } as const
const coloured = process.stdout.isTTY === true && !process.env['NO_COLOR']
const start = performance.now()

function say(who: keyof typeof COLOUR, what: string): void {
  const time = `${((performance.now() - start) / 1000).toFixed(2)} s`.padStart(7)
  const name = who.padEnd(6)
  console.log(`${time}  ${coloured ? `\x1b[${COLOUR[who]}m${name}\x1b[0m` : name}  ${what}`)
}

/** The protected resource: it refuses a token that is lower than one it has seen. */
class Report {
  highest: Token = 0

  write({ text, token }: Write): void {
    if (token < this.highest) {
      say('report', `REFUSED "${text}" with token ${token}: it has seen token ${this.highest}`)
    } else {
      this.highest = token
      say('report', `accepted "${text}" with token ${token}`)
    }
  }
}

interface Write {
  readonly text: string
  readonly token: Token
}

/** A process that wants the key, as this process sees it. */
class Worker {
  readonly name: Name
  readonly process: ChildProcess
  readonly granted: Promise<Token>
  /** When its lease ends unless it is renewed, as this process's clock counts. */
  deadline = 0
  heartbeats = 0

  constructor(name: Name, pages: number, onWrite: (write: Write) => void) {
    this.name = name
    const file = fileURLToPath(new URL('./life-of-a-lease/worker.js', import.meta.url))
    const settings = [name, KEY, String(TTL_MS), String(pages)]
    this.process = fork(file, settings, { serialization: 'advanced' })
    say(name, `starts as process ${this.process.pid} and asks for ${KEY}`)
    this.granted = new Promise((resolve) => {
      this.process.on('message', (message: { granted?: Token; write?: Write }) => {
        if (message.granted !== undefined) {
          say(name, `is GRANTED ${KEY} with token ${message.granted}`)
          resolve(message.granted)
        }
        if (message.write !== undefined) onWrite(message.write)
      })
    })
    lendStore(store, this.process, (method) => {
      if (method === 'grant' || method === 'renew') this.deadline = performance.now() + TTL_MS
      if (method !== 'renew') return
      this.heartbeats++
      say(name, `renews by a heartbeat: ${TTL_MS / 1000} s more from now`)
    })
  }
}

function tell({ type, token, holder, end }: Event): void {
  if (type === 'claimed') say('store', `${holder} takes a place in the line, with token ${token}`)
  if (type === 'held') say('store', `${holder} holds the key, with token ${token}`)
  if (type !== 'removed') return
  if (end?.reason !== 'expired') {
    say('store', `the claim of ${holder} with token ${token} is ${end?.reason}`)
    return
  }
  const late = performance.now() - alice.deadline
  say('store', `the lease of ${holder} EXPIRED, ${late.toFixed(1)} ms after its time was over`)
}

// If anything goes wrong, this ends the example with an exit code.
setTimeout(() => {
  console.error('this takes too long: something is wrong')
  process.exit(1)
}, 60_000).unref()

const folder = await mkdtemp(join(tmpdir(), 'leasehold-'))
const store = await fileStore(folder)
say('store', 'a durable store is open in a temporary folder')
store.watch({ prefix: KEY }, (notice) => {
  if (notice.type === 'events') for (const event of notice.events) tell(event)
})

const report = new Report()
const onTheWay: Write[] = []
let congested = false
const alice = new Worker('alice', 100, (write) => {
  if (congested) onTheWay.push(write)
  else report.write(write)
})
const first = await alice.granted
say('alice', `has it for ${TTL_MS / 1000} s, unless she renews`)
while (report.highest < first) await pause(10)

const bob = new Worker('bob', 2, (write) => report.write(write))
while (alice.heartbeats < 2 || bob.heartbeats < 1) await pause(10)

// From now on the writes of Alice arrive late, as on a congested network.
congested = true
while (onTheWay.length === 0) await pause(10)
alice.process.kill('SIGKILL')
await once(alice.process, 'exit')
const left = alice.deadline - performance.now()
say('alice', `is KILLED: she released nothing, and her lease has ${left.toFixed(0)} ms left`)
say('bob', 'still waits: nobody can hold the key before that time is over')

const second = await bob.granted
say('bob', `has token ${second}, which is higher than ${first}`)
while (report.highest < second) await pause(10)
say('alice', 'is long dead, but a write of hers arrives at last')
for (const write of onTheWay) report.write(write)
await once(bob.process, 'exit')

const { tenures } = await store.read({ history: KEY })
for (const { holder, token, heldSince, endedAt, end } of [...tenures].reverse()) {
  const seconds = ((endedAt - heldSince) / 1000).toFixed(2)
  say('store', `history: ${holder}, token ${token}, held for ${seconds} s, ${end.reason}`)
}
await store.close()
await rm(folder, { recursive: true })
