import assert from 'node:assert/strict'
import { isRefused, Kernel, type Refused } from '../../kernel/index.ts'
import {
  type Event,
  type LeaseStore,
  type Limits,
  type Query,
  type Random,
  type Reading,
  systemRandom,
} from '../../port/index.ts'
import { Ear } from '../conformance/ear.ts'
import type { Opened } from '../conformance/scene.ts'
import { type Call, Names } from './calls.ts'
import { type Command, KEYS } from './command.ts'
import { plain, plainEvents, plainKernelRefusal, plainRefusal, sorted } from './plain.ts'

/** Where time cannot be moved, everything lives for longer than any comparison takes. */
const LONG_MS = 3_600_000

export interface CompareOptions {
  /** The limits that the store was opened with, where they are not the default ones. */
  readonly limits?: Partial<Limits> | undefined
  readonly random?: Random | undefined
}

/**
 * Gives the same commands to a store and to a kernel, at the same times, and fails where they
 * differ: in an answer, in what can be read at the end, or in the events that a watch has seen.
 * Where the store's clock cannot be moved, nothing expires and times are not compared; where it has
 * no child leases, none are asked for.
 */
export async function compareWithKernel(
  open: () => Promise<Opened>,
  commands: readonly Command[],
  options: CompareOptions = {},
): Promise<void> {
  const opened = await open()
  const prefix = `commands/${(options.random ?? systemRandom).id()}/`
  try {
    const ear = new Ear(opened.store, { prefix })
    await ear.next('watching')
    const store = new StoreSide(opened, prefix)
    const kernel = new KernelSide(prefix, store.exact, await now(opened.store), options)
    for (const [at, command] of commands.entries()) {
      if (!opened.advance && command.do === 'pass') continue
      const timed = opened.advance ? command : withoutTime(command)
      const step = opened.store.guarantees.childLeases ? timed : withoutParent(timed)
      const [answer, expected] = [await store.run(step), kernel.run(step)]
      assert.deepEqual(answer, expected, `command ${at} was answered otherwise by the kernel`)
    }
    assert.deepEqual(await store.everything(), await kernel.everything(), 'the readings differ')
    await compareEvents(ear, store, kernel)
    ear.close()
  } finally {
    await opened.store.close()
    await opened.close?.()
  }
}

/** The time on the store's clock, as a lease shows it. */
async function now(store: LeaseStore): Promise<number> {
  const granted = await store.grant({ holder: 'clock', ttl: Infinity })
  assert.equal(granted.outcome, 'granted')
  const { lease } = granted as { lease: string }
  const { grantedAt } = (await store.read({ lease })).lease!
  await store.revoke({ target: { lease } })
  return grantedAt
}

async function compareEvents(ear: Ear, store: StoreSide, kernel: KernelSide): Promise<void> {
  const last = { do: 'grant', holder: 'last', ttl: LONG_MS, claims: [{ key: 'last' }] } as const
  await store.run(last)
  kernel.run(last)
  const events = await ear.eventsUntil(({ holder }) => holder === 'last')
  assert.deepEqual(
    plainEvents(events, store.names, store.exact),
    plainEvents(kernel.events(), kernel.names, store.exact),
    'the events differ',
  )
}

/** The same command, but so that nothing comes to its end by time. */
function withoutTime(command: Command): Command {
  if (command.do === 'grant') {
    const { grace: _, maxLife: __, ...rest } = command
    return { ...rest, ttl: LONG_MS }
  }
  if (command.do === 'revoke') {
    return { ...command, ...(command.after ? { after: LONG_MS / 2 } : {}) }
  }
  return command
}

/** The same command for a store that has no leases under leases: what it refuses is not compared. */
function withoutParent(command: Command): Command {
  if (command.do !== 'grant') return command
  const { parent: _, ...rest } = command
  return rest
}

abstract class Side {
  readonly names: Names
  readonly exact: boolean

  constructor(prefix: string, exact: boolean) {
    this.names = new Names(prefix)
    this.exact = exact
  }

  abstract read<Q extends Query>(query: Q): Promise<Reading<Q>>

  /** Everything that can be read of what the commands have made. */
  async everything(): Promise<unknown> {
    const { prefix, leases } = this.names
    const keys = await this.read({ prefix })
    const lines = []
    for (const { key } of keys.keys) lines.push(await this.read({ key }))
    const each = []
    for (const lease of leases) each.push(this.plainReading(await this.read({ lease })))
    const histories = []
    for (const name of KEYS) {
      const key = prefix + name
      const { tenures } = await this.read({ history: key })
      histories.push(this.plain(tenures.map((tenure) => ({ ...tenure, key }))))
    }
    return { keys: this.plain(keys), lines: this.plain(lines), each, histories }
  }

  plain(value: unknown): unknown {
    return plain(value, this.names, this.exact)
  }

  /** A reading, with those lists sorted whose order is not promised. */
  plainReading(reading: object): unknown {
    if ('lease' in reading && 'claims' in reading) {
      return this.plain({ ...reading, claims: sorted(this.plain(reading.claims)) })
    }
    if ('leases' in reading && Array.isArray(reading.leases)) {
      const known = new Set(this.names.leases)
      const own = reading.leases.filter(({ id }) => known.has(id))
      return { leases: sorted(this.plain(own)) }
    }
    return this.plain(reading)
  }
}

class StoreSide extends Side {
  readonly #opened: Opened

  constructor(opened: Opened, prefix: string) {
    super(prefix, opened.advance !== undefined)
    this.#opened = opened
  }

  override read<Q extends Query>(query: Q): Promise<Reading<Q>> {
    return this.#opened.store.read(query)
  }

  async run(command: Command): Promise<unknown> {
    const call = this.names.call(command)
    try {
      const answer = await this.#answer(call)
      this.names.learn(call, answer)
      return this.plainReading(answer)
    } catch (error) {
      return plainRefusal(error, this.names)
    }
  }

  async #answer(call: Call): Promise<object> {
    const { store, advance } = this.#opened
    if (call.method === 'pass') {
      await advance?.(call.argument)
      return {}
    }
    return (store[call.method] as (argument: unknown) => Promise<object>)(call.argument)
  }
}

class KernelSide extends Side {
  readonly #kernel: Kernel
  #now: number

  constructor(prefix: string, exact: boolean, now: number, options: CompareOptions) {
    super(prefix, exact)
    this.#kernel = new Kernel({ limits: options.limits })
    this.#now = now
  }

  override async read<Q extends Query>(query: Q): Promise<Reading<Q>> {
    return this.#kernel.reader.read(query) as Reading<Q>
  }

  run(command: Command): unknown {
    const call = this.names.call(command)
    const answer = this.#answer(call)
    if (isRefused(answer as Refused)) {
      return plainKernelRefusal((answer as Refused).refusal, this.names)
    }
    this.names.learn(call, answer)
    return this.plainReading(answer)
  }

  events(): Event[] {
    const { events } = this.#kernel
    const from = events.after(events.completeAfter)
    return Array.from({ length: events.next - from }, (_, at) => events.event(from + at))
  }

  #answer(call: Call): object {
    const kernel = this.#kernel
    if (call.method === 'pass') return this.#pass(call.argument)
    if (call.method === 'read') return kernel.reader.read(call.argument)
    return (kernel[call.method] as (argument: unknown, now: number) => object)(
      call.argument,
      this.#now,
    )
  }

  /** As a store's clock does: every deadline on the way is a moment of its own. */
  #pass(ms: number): object {
    const end = this.#now + ms
    while (this.#kernel.nextDeadline <= end) {
      this.#now = Math.max(this.#now, this.#kernel.nextDeadline)
      this.#kernel.expire(this.#now, 1)
    }
    this.#now = end
    return {}
  }
}
