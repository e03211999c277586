import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { systemClock } from 'leasehold/port'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { controlFrame, OPCODE, textFrame } from '../../../leasehold/src/stores/remote/frames.ts'
import { DEFAULT_STREAM } from '../../src/index.ts'
import { runLeasehold } from '../setup/run-leasehold.ts'
import { Place, type ServerProcess } from '../setup/server-process.ts'
import { RawStream, rawSocket } from './raw-stream.ts'

/**
 * The worst effect of one client on all others. The server is a separate process, and the input is
 * prepared in advance, so only the server's pause is measured. It counts the run time of the
 * server's main thread, if the system provides it: on a busy machine the server also waits for a
 * core, which is not its fault.
 */
const PAUSE_MAX_MS = 100
/** The minimum length of the attack, and the minimum rate of other requests. */
const ATTACK_MS = 1500
const ASKED_MIN = 10

const place = new Place()
let server: ServerProcess
let root = ''
/** A token that may do nothing. */
let powerless = ''
let other: RawStream

async function token(name: string, right: string, store: string): Promise<string> {
  const args = ['access-token', 'create', name, '--right', right, '--store', store]
  const { stdout, stderr } = await runLeasehold(args)
  const found = /lh_\S+/.exec(stdout)?.[0]
  if (found === undefined) throw new Error(`no token: ${stderr}`)
  return found
}

beforeAll(async () => {
  const store = `file:${await place.folder()}`
  root = await token('root', 'all:', store)
  powerless = await token('powerless', 'read:nothing/', store)
  server = await place.serverOn(store).start()
  other = await RawStream.greeted(server.url, 'other', { token: root })
}, 60_000)

afterAll(async () => {
  other.socket.terminate()
  await place.clean()
})

const MEGABYTE = 1 << 20
const LARGEST = DEFAULT_STREAM.frameBytes
const repeated = (part: string, bytes: number) => part.repeat(Math.floor(bytes / part.length))
const frame = (text: string) => textFrame(text, 1)

/** A frame of this many messages, the last of which has an extra comma. */
const frameOf = (text: string) => frame(`[${text.slice(0, -1)}]`)

const leases = (bytes: number) => repeated('"1.1~aaaaaaaaaaaaaaaaaaaaaa",', bytes).slice(0, -1)
const objects = (count: number) =>
  Array.from({ length: count }, (_, number) => `{"k${number}":{}}`).join(',')

const ATTACKS: readonly (readonly [name: string, bytes: () => Buffer, connections: number])[] = [
  ['31 MB of empty messages', () => frameOf(repeated('[],', 31 * MEGABYTE)), 1],
  ['the largest frame of empty messages', () => frameOf(repeated('[],', LARGEST)), 20],
  ['as many empty messages as may be', () => frameOf(repeated('[],', 12_000)), 20],
  ['the largest frame of brackets', () => frame('['.repeat(LARGEST)), 20],
  ['objects of many shapes', () => frame(`[[1,"read",[${objects(35_000)}]]]`), 20],
  ['as many objects as may be', () => frame(`[[1,"read",[${objects(6000)}]]]`), 20],
  ['leases that are not there', () => frame(`[[1,"renew",[${leases(LARGEST - 99)}]]]`), 8],
  ['leases to tie', () => frame(`[[1,"tie",[${leases(LARGEST - 99)}]]]`), 8],
  [
    'requests without a right',
    () => frameOf(repeated('[1,"grant",{"holder":"h","ttl":60000}],', 150_000)),
    20,
  ],
  ['wrong requests', () => frameOf(repeated('[1,"claim","x",[""],0],', 60_000)), 20],
  ['a message in fragments of a byte', fragments, 4],
  [
    'only pings',
    () => Buffer.concat(Array(100_000).fill(controlFrame(OPCODE.ping, Buffer.alloc(0), 1))),
    4,
  ],
  ['frames of nothing', () => Buffer.concat(Array(100_000).fill(frame('[]'))), 4],
]

function fragments(): Buffer {
  const first = frame('[')
  first[0] = OPCODE.text
  const next = frame(' ')
  next[0] = OPCODE.more
  return Buffer.concat([first, ...Array(600_000).fill(next)])
}

/** The run time of the server in milliseconds, or the time of day if that is unknown. */
function serverTime(): number {
  const { pid } = server
  try {
    const [ran] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')
    return Number(ran) / 1e6
  } catch {
    return systemClock.now()
  }
}

/**
 * How long this process has run, and has waited for a processor, in milliseconds. Meanwhile the server
 * runs on after its answer, which is no stall.
 */
function ownTime(): number {
  try {
    const [ran, waited] = readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(
      ' ',
    )
    return (Number(ran) + Number(waited)) / 1e6
  } catch {
    return 0
  }
}

/** Sends as fast as the server reads, again and again, on connections that are opened again. */
class Attacker {
  readonly #bytes: Buffer
  #socket: Socket | undefined
  #over = false

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  async run(): Promise<void> {
    while (!this.#over) {
      const socket = await rawSocket(server.url, powerless)
      this.#socket = socket
      socket.resume()
      const closed = once(socket, 'close')
      while (!this.#over && !socket.destroyed) {
        if (!socket.write(this.#bytes)) await Promise.race([once(socket, 'drain'), closed])
      }
      socket.destroy()
      await closed
    }
  }

  stop(): void {
    this.#over = true
    this.#socket?.destroy()
  }
}

describe('a token that may do nothing', () => {
  it.each(ATTACKS)(
    'cannot stall others with %s',
    async (_name, bytes, connections) => {
      const attackers = Array.from({ length: connections }, () => new Attacker(bytes()))
      const attack = Promise.all(attackers.map((each) => each.run().catch(() => {})))
      const end = systemClock.now() + ATTACK_MS
      let longest = 0
      for (let id = 1; id <= ASKED_MIN || systemClock.now() < end; id++) {
        const [sent, own] = [serverTime(), ownTime()]
        other.heard.length = 0
        expect(await other.ask(id, 'read', { key: 'mine' })).toMatchObject([id, 1, { count: 0 }])
        longest = Math.max(longest, serverTime() - sent - (ownTime() - own))
      }
      for (const attacker of attackers) attacker.stop()
      expect(longest, 'another client waited').toBeLessThan(PAUSE_MAX_MS)
      await attack
    },
    120_000,
  )
})
