import { EventEmitter } from 'node:events'
import { memoryStore } from 'leasehold/memory'
import { DEFAULT_LIMITS, type LeaseStore, systemRandom } from 'leasehold/port'
import { PROTOCOL } from 'leasehold/remote'
import { TestClock } from 'leasehold/testing'
import { pino } from 'pino'
import { expect } from 'vitest'
import type { WebSocket } from 'ws'
import { Access, type Admission, noAudit, parseRight, type Quota } from '../../src/access/index.ts'
import { DEFAULT_STREAM, type StreamOptions } from '../../src/stream/options.ts'
import { StreamServer } from '../../src/stream/stream-server.ts'
import { changedStore, type Gate } from '../setup/changed-store.ts'

/** One end of a WebSocket whose other end is the test: nothing is sent, and the test moves the time. */
export class TestSocket extends EventEmitter {
  readonly OPEN = 1
  readyState = 1
  bufferedAmount = 0
  isPaused = false
  readonly heard: unknown[][] = []
  pings = 0
  readonly pongs: string[] = []
  closed: readonly [code: number, reason: string] | undefined
  terminated = 0
  fault: Error | undefined
  #left: (() => void)[] = []

  send(text: string, left: () => void): void {
    if (this.fault) throw this.fault
    this.heard.push(...JSON.parse(text))
    this.#left.push(left)
  }

  /** The client has read everything. */
  drained(): void {
    this.bufferedAmount = 0
    for (const left of this.#left.splice(0)) left()
  }

  ping(): void {
    this.pings++
  }

  pong(data: Buffer): void {
    this.pongs.push(String(data))
  }

  pause(): void {
    this.isPaused = true
  }

  resume(): void {
    this.isPaused = false
  }

  close(code: number, reason: string): void {
    if (this.fault) throw this.fault
    this.readyState = 2
    this.closed = [code, reason]
  }

  terminate(): void {
    this.terminated++
  }

  frame(...messages: readonly unknown[]): void {
    this.text(JSON.stringify(messages))
  }

  text(text: string): void {
    this.emit('message', Buffer.from(text), false)
  }

  hello(client: string, tied?: number): void {
    this.frame(['hello', PROTOCOL, { client, tied }])
  }

  /** The other end has gone. */
  end(code = 1006): void {
    this.readyState = 3
    this.emit('close', code, Buffer.alloc(0))
  }
}

export const KEY = { key: 'k' }

/** Renews nothing, and is answered when the gate is open. */
export const renewAfter =
  (gate: Gate, called: (leases: readonly string[]) => void = () => {}) =>
  async (leases: readonly string[]) => {
    called(leases)
    await gate.opened
    return { lost: [], capped: [] }
  }

export async function scene(
  options: Partial<StreamOptions> = {},
  changes: Partial<LeaseStore> = {},
) {
  const clock = new TestClock()
  const inner = memoryStore({ clock })
  const store = changedStore(inner, changes)
  const access = await Access.open({ store, limits: DEFAULT_LIMITS, audit: noAudit, clock })
  const logged: { readonly level: number; readonly msg: string }[] = []
  const errors: unknown[] = []
  const write = (line: string) => {
    const entry = JSON.parse(line)
    logged.push(entry)
    if (entry.level >= pino.levels.values['error']!) errors.push(entry)
  }
  const log = pino({ level: 'debug' }, { write })
  const server = new StreamServer({
    ...{ store, access, clock, log, limits: DEFAULT_LIMITS, random: systemRandom },
    options: { ...DEFAULT_STREAM, ...options },
  })
  const connect = (admission: Admission = access.admit({})) => {
    const socket = new TestSocket()
    server.accept(socket as unknown as WebSocket, admission)
    return socket
  }
  /** Connects, and is welcomed. */
  const greeted = async (client: string, tied?: number, admission?: Admission) => {
    const socket = connect(admission)
    socket.hello(client, tied)
    await clock.advance(0)
    expect(socket.heard.shift()?.[0]).toBe('welcome')
    return socket
  }
  const as = async (name: string, quota: Quota = {}) => {
    const rights = [parseRight('all:')]
    const token = await access.tokens.create({ name, rights, quota })
    return access.admit({ authorization: `Bearer ${token}` })
  }
  const alive = async (id: string) => (await inner.read({ lease: id })).lease !== undefined
  return { clock, inner, access, server, connect, greeted, as, alive, errors, logged }
}

export const grant = (id: number, more: object = {}) => [
  id,
  'grant',
  { holder: 'h', ttl: 60_000, ...more },
]
export const leaseIn = (socket: TestSocket) => (socket.heard.at(-1)![2] as { lease: string }).lease
