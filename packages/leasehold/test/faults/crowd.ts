import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { memoryFence } from '../../src/fence/index.ts'
import type { LeaseStore } from '../../src/index.ts'
import { childPrograms } from '../setup/child-programs.ts'
import type { History, Holding, Write } from './history.ts'

/** The export of a module for `CrowdSpec.module`: opens the store in the process of a numbered member. */
export type OpenStore = (argument: string, member: number) => LeaseStore | Promise<LeaseStore>

export interface CrowdSpec {
  /** The address of a module that exports `openStore`, and its argument. */
  readonly module: string | URL
  readonly argument: string
  /** The prefix of the keys of this crowd, because others may use the engine too. */
  readonly prefix: string
  readonly members?: number
  readonly keys?: number
  readonly ttl?: number
  readonly grace?: number
  readonly seed?: number
}

export interface MemberSpec {
  readonly name: string
  readonly number: number
  readonly module: string
  readonly argument: string
  readonly keys: readonly string[]
  readonly ttl: number
  readonly grace: number
  readonly wait: number
  readonly seed: number
}

/** The reports of a member, in the order in which it learnt them. */
export type Report =
  | { readonly is: 'ready' | 'left' }
  | ({ readonly is: 'held'; requested: number; at: number; until: number } & Place)
  | ({ readonly is: 'holds'; until: number } & Place)
  | ({ readonly is: 'write' } & Place)
  | ({ readonly is: 'releases'; at: number } & Place)
  | ({ readonly is: 'lost'; at: number; reason: string } & Place)
  | { readonly is: 'refused'; key: string; code: string; message: string }
  | { readonly is: 'fault'; message: string }

interface Place {
  readonly key: string
  readonly token: number
}

const MEMBER = fileURLToPath(new URL('./crowd-member.ts', import.meta.url))

/**
 * Processes that repeatedly lock the same few keys of one engine, while a test breaks the engine,
 * the connections and the processes. Their reports become a `History`.
 */
export class Crowd {
  readonly members: Member[] = []
  readonly #spec: CrowdSpec
  readonly #holdings: Holding[] = []
  readonly #writes: Write[] = []
  readonly #newest = new Map<string, number>()
  readonly #fence = memoryFence()
  #names = 0

  private constructor(spec: CrowdSpec) {
    this.#spec = spec
  }

  static async gather(spec: CrowdSpec): Promise<Crowd> {
    const crowd = new Crowd(spec)
    try {
      await Promise.all(Array.from({ length: spec.members ?? 3 }, () => crowd.join()))
      return crowd
    } catch (error) {
      crowd.#killAll()
      throw error
    }
  }

  /** One more member. */
  async join(): Promise<Member> {
    const { module, argument, prefix, keys = 2, ttl = 2000, grace = 0, seed = 1 } = this.#spec
    const number = ++this.#names
    const member = new Member(
      {
        name: `member ${number}`,
        number,
        module: String(module),
        argument,
        keys: Array.from({ length: keys }, (_, at) => `${prefix}crowd/${at}`),
        ttl,
        grace,
        wait: 5 * ttl,
        seed: seed * 1000 + number,
      },
      (report) => this.#receive(member, report),
    )
    this.members.push(member)
    await member.ready
    return member
  }

  /** Waits until every member that is not frozen or dead has held something again. */
  async allHold(within = 30_000): Promise<void> {
    const since = new Map(this.members.map((member) => [member, member.held]))
    await this.until('everybody has held something again', within, () =>
      this.members.every(
        (member) => !member.awake || member.held > (since.get(member) ?? member.held),
      ),
    )
  }

  /** Waits until members were notified this many more times that they hold something. */
  async holdings(more: number, within = 30_000): Promise<void> {
    const count = this.#holdings.length + more
    await this.until(`${more} more holdings`, within, () => this.#holdings.length >= count)
  }

  async until(what: string, within: number, isSo: () => boolean | Promise<boolean>): Promise<void> {
    const end = performance.now() + within
    while (!(await isSo())) {
      this.#throwFaults()
      if (performance.now() > end) {
        const last = this.members.map((member) => `${member.name}: ${member.lastRefusal ?? 'none'}`)
        throw new Error(
          `waited ${within} ms without success: ${what}. Latest refusals: ${last.join('; ')}`,
        )
      }
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }

  /** All that the members have reported so far. */
  get history(): History {
    return { holdings: this.#holdings, writes: this.#writes }
  }

  /** Stops the living members and returns all reports. */
  async leave(): Promise<History> {
    for (const member of this.members) member.thaw()
    await Promise.all(this.members.map((member) => member.leave()))
    this.#throwFaults()
    return this.history
  }

  #killAll(): void {
    for (const member of this.members) member.kill()
  }

  #throwFaults(): void {
    const fault = this.members.find((member) => member.fault !== undefined)
    if (!fault) return
    this.#killAll()
    throw new Error(`${fault.name} met a fault that is no answer of the library: ${fault.fault}`)
  }

  #receive(member: Member, report: Report): void {
    if (report.is === 'held') this.#held(member, report)
    else if (report.is === 'write') this.#write(member, report)
    else if (report.is === 'holds' || report.is === 'releases' || report.is === 'lost') {
      const holding = member.holding!
      if (report.is === 'holds') holding.believedUntil = report.until
      else if (report.is === 'releases') holding.releasedAt = report.at
      else holding.lost = { at: report.at, reason: report.reason }
    }
  }

  #held(member: Member, { key, token, requested, at, until }: Report & { is: 'held' }): void {
    const holding = {
      client: member.name,
      key,
      token,
      requested,
      notified: at,
      believedUntil: until,
    }
    this.#holdings.push(holding)
    this.#newest.set(key, Math.max(token, this.#newest.get(key) ?? 0))
    member.holding = holding
  }

  #write(member: Member, { key, token }: Place): void {
    const newest = this.#newest.get(key)!
    // Before the next message of any member: the resource sees one write at a time.
    const write = { client: member.name, key, token, newest, accepted: false }
    this.#writes.push(write)
    void this.#fence.admit(key, token).then(
      () => {
        write.accepted = true
      },
      () => {},
    )
  }
}

export class Member {
  readonly name: string
  readonly ready: Promise<void>
  /** How often it was notified that it holds something. */
  held = 0
  holding: Holding | undefined
  lastRefusal: string | undefined
  fault: string | undefined
  readonly #process: ChildProcess
  readonly #gone: Promise<unknown>
  #said = ''
  #frozen = false
  #left = false
  #ended = false

  constructor(spec: MemberSpec, receive: (report: Report) => void) {
    this.name = spec.name
    const [program, module] = childPrograms(MEMBER, fileURLToPath(spec.module))
    const child = fork(program!, [JSON.stringify({ ...spec, module })], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    this.#process = child
    // Not on 'exit', which can come before the last report of the process.
    this.#gone = once(child, 'close').then(() => this.#onClose())
    const keep = (text: Buffer) => {
      this.#said = (this.#said + text).slice(-4000)
    }
    child.stdout!.on('data', keep)
    child.stderr!.on('data', keep)
    this.ready = new Promise((resolve, reject) => {
      child.on('message', (report: Report) => {
        if (report.is === 'ready') resolve()
        else if (report.is === 'held') this.held++
        else if (report.is === 'refused') this.lastRefusal = `${report.code} (${report.message})`
        else if (report.is === 'fault') this.fault = report.message
        else if (report.is === 'left') this.#left = true
        receive(report)
      })
      child.once('close', () => reject(new Error(`${spec.name} did not start:\n${this.#said}`)))
    })
  }

  get pid(): number {
    return this.#process.pid!
  }

  get awake(): boolean {
    return !this.#frozen && !this.#ended
  }

  /** Freezes it, at any point of its work. */
  freeze(): void {
    this.#frozen = true
    this.#process.kill('SIGSTOP')
  }

  thaw(): void {
    this.#frozen = false
    this.#process.kill('SIGCONT')
  }

  kill(): void {
    this.#ended = true
    this.#process.kill('SIGKILL')
  }

  async leave(within = 30_000): Promise<void> {
    if (!this.#ended && this.#process.connected) this.#process.send('leave')
    const late = setTimeout(() => {
      this.fault = `it did not leave within ${within} ms; its latest refusal: ${this.lastRefusal}`
      this.kill()
    }, within)
    await this.#gone
    clearTimeout(late)
  }

  #onClose(): void {
    if (!this.#ended && !this.#left) this.fault ??= `its process ended by itself:\n${this.#said}`
    this.#ended = true
  }
}
