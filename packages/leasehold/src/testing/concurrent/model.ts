import {
  type ChangeSink,
  DISCARD_CHANGES,
  isRefused,
  Kernel,
  type Refused,
} from '../../kernel/index.ts'
import type {
  Event,
  Lease,
  LeasesReading,
  Limits,
  Notice,
  Revision,
  WatchTarget,
} from '../../port/index.ts'
import { KernelWatches } from '../commands/kernel-watches.ts'
import type { Asked, Restart } from './history.ts'
import { numberOf, ROUNDING_MS } from './name-matcher.ts'

/** What a watch must receive from its first notice on. */
export type Expected =
  | { readonly of: 'lease'; readonly notices: readonly Notice[] }
  | { readonly of: 'prefix'; readonly prefix: string; readonly after: Revision }

/** A kernel that carries out calls one at a time, and records what every watch must receive. */
export class Model {
  /** All events since the beginning, including those before a restart. */
  readonly events: Event[] = []
  readonly #limits: Partial<Limits> | undefined
  #kernel: Kernel
  #watches = new KernelWatches()
  #now = 0
  #eventsSeen = 0
  /** A restarted store need not have the events up to this revision. */
  #eventsAfter: Revision
  /** Which leases have ended, in order, and the answers to requests. */
  #ends = ''
  readonly #answers = new Map<string, string>()
  readonly #changeSink: ChangeSink = {
    ...DISCARD_CHANGES,
    ended: (revision, slot) => {
      this.#ends += `,${revision}.${slot}`
    },
    answered: (request, answer) => void this.#answers.set(request, JSON.stringify(answer)),
  }

  constructor(limits: Partial<Limits> | undefined, revision: Revision) {
    this.#limits = limits
    this.#kernel = this.#begin(revision)
    this.#eventsAfter = revision
  }

  get revision(): Revision {
    return this.#kernel.revision
  }

  /**
   * What calls leave behind besides their changes, in any order. After the same changes, two models with
   * the same traces continue in the same way.
   */
  get traces(): string {
    const renewals = this.#leases().map(({ id, renewedAt }) => `${id}@${renewedAt}`)
    const answers = [...this.#answers].map(([request, answer]) => `${request}:${answer}`)
    return [this.revision, this.#ends, renewals.join(), ...answers.sort()].join('|')
  }

  /** Expires all that is due up to this time, each lease at its own moment. */
  expireUntil(time: number): void {
    while (this.#kernel.nextDeadline <= time) this.#expire(this.#kernel.nextDeadline)
    this.#now = Math.max(this.#now, time)
  }

  /** No lease expires before this time. */
  get nextDeadline(): number {
    return this.#kernel.nextDeadline
  }

  /** Expires the next lease at its moment, if that is not after this time. */
  expireNext(until: number): boolean {
    const { revision } = this
    while (this.nextDeadline <= until && this.revision === revision) this.#expire(this.nextDeadline)
    return this.revision > revision
  }

  /** Carries out a call, and answers as a store must; a refusal is a code and an end. */
  run(asked: Asked, time: number): object {
    this.#now = Math.max(this.#now, time)
    const answer = this.#run(asked)
    this.#collect()
    if (!isRefused(answer as Refused)) return answer
    const { code, end } = (answer as Refused).refusal
    return { code, end }
  }

  /** Begins a watch. Returns its first notice, and what it must receive. */
  watch(target: WatchTarget): { readonly first: Notice; readonly expected: Expected } {
    if ('lease' in target) {
      const notices = this.#watches.begin(this.#kernel, target.lease)
      return { first: notices[0]!, expected: { of: 'lease', notices } }
    }
    const { prefix, from: after = this.revision } = target
    const expected = { of: 'prefix', prefix, after } as const
    if (after > this.revision) {
      return { first: { type: 'compacted', oldest: this.#eventsAfter }, expected }
    }
    return { first: { type: 'watching', revision: after }, expected }
  }

  /** Whether a store may have forgotten the events after this revision. */
  mayForget(after: Revision): boolean {
    return after < this.#eventsAfter
  }

  #begin(revision: Revision): Kernel {
    const noticeSink = this.#watches
    return new Kernel({ limits: this.#limits, revision, noticeSink, changeSink: this.#changeSink })
  }

  #run({ method, argument }: Asked): object {
    const kernel = this.#kernel
    if (method === 'restart') return this.#restart(argument)
    if (method === 'watch') return this.watch(argument).first
    if (method === 'read') return kernel.reader.read(argument)
    return (kernel[method] as (argument: unknown, now: number) => object)(argument, this.#now)
  }

  /** Like a store that is opened again: see `Kernel.finishReplay`. */
  #restart(restart: Restart): object {
    const old = this.#kernel
    const { openedAt, mayHaveSkipped, revision } = restart
    const isExpected = mayHaveSkipped ? revision >= old.revision : revision === old.revision
    if (!isExpected) return { problem: `revision ${revision} follows ${old.revision}` }
    const shown = outline(this.#leases())
    if (outline(restart.leases) !== shown)
      return { problem: `the leases were ${outline(restart.leases)}, and ${shown}` }
    const shift = this.#putOffBy(restart)
    if (shift === undefined) return { problem: 'lives were put off by too little or too much' }
    this.#watches = new KernelWatches()
    this.#kernel = this.#begin(revision)
    const changeSink = this.#kernel.replay()
    changeSink.covers(old.slots)
    old.describe(0, old.slots, changeSink)
    for (const _ of old.describeRetained(changeSink));
    this.#kernel.startEvents(revision)
    this.#kernel.finishReplay(openedAt, openedAt - shift)
    this.#now = openedAt
    this.#eventsSeen = 0
    this.#eventsAfter = revision
    return {}
  }

  /** By how much the store has postponed the ends of lives; `undefined` if that is out of bounds. */
  #putOffBy({ leases, putOff: [least, most] }: Restart): number | undefined {
    const ends = new Map(this.#leases().map(({ id, endOfLife }) => [numberOf(id), endOfLife]))
    for (const { id, endOfLife } of leases) {
      const before = ends.get(numberOf(id)) ?? Infinity
      if (before === Infinity || endOfLife === Infinity) continue
      const shift = endOfLife - before
      return shift >= least - ROUNDING_MS && shift <= most + ROUNDING_MS ? shift : undefined
    }
    return least
  }

  #leases(): readonly Lease[] {
    return (this.#kernel.reader.read({ leases: true }) as LeasesReading).leases
  }

  #expire(time: number): void {
    this.#now = Math.max(this.#now, time)
    this.#kernel.expire(this.#now, 1)
    this.#collect()
  }

  #collect(): void {
    const { events } = this.#kernel
    for (; this.#eventsSeen < events.next; this.#eventsSeen++) {
      this.events.push(events.event(this.#eventsSeen))
    }
  }
}

/** Which leases there are, and how much belongs to each. */
function outline(leases: readonly Lease[]): string {
  return leases
    .map(({ id, claims, children }) => `${numberOf(id)}:${claims}:${children}`)
    .sort()
    .join()
}
