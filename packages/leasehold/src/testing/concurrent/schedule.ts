import type { Command } from '../commands/command.ts'
import {
  callCommands,
  type FastCheck,
  type Maker,
  multiples,
  recent,
  record,
  weighted,
} from '../commands/command-sequences.ts'

/** One action. The store is one of those that are open on the same data. */
export type Act =
  | { readonly do: 'call'; readonly store: number; readonly command: Command }
  | {
      readonly do: 'watch'
      readonly store: number
      readonly prefix: string
      /** Resumes after a revision of this many answers ago. Without it: from now on. */
      readonly from?: number | undefined
    }
  | { readonly do: 'watch lease'; readonly store: number; readonly lease: number }
  /** Closes the watch that was opened this many watches ago. */
  | { readonly do: 'unwatch'; readonly watch: number }

/** Several actions at one moment, none of which waits for another. */
export interface Tick<Fault = unknown> {
  /** What goes wrong from now on. Each driver has its own kinds of faults. */
  readonly fault?: Fault | undefined
  readonly acts: readonly Act[]
  /** Waits until every call is answered before the next tick. */
  readonly settle: boolean
  /** Then this much time passes, in milliseconds. */
  readonly pass: number
}

export interface ScheduleOptions {
  /** The maximum number of ticks. Default: 20. */
  readonly ticks?: number | undefined
  /** How many stores are open on the same data. Default: 1. */
  readonly stores?: number | undefined
  /** Times are multiples of this, in milliseconds. Default: 10. */
  readonly step?: number | undefined
  /** An arbitrary of faults. Default: none. */
  readonly faults?: unknown
}

/** The maximum of actions in one tick. */
const ACTS = 5

/** Random schedules, as an arbitrary of the caller's fast-check. Only the caller knows its type. */
export function concurrentSchedules<A>(fc: FastCheck, options: ScheduleOptions = {}): A {
  const { ticks = 20, stores = 1, step = 10, faults } = options
  const make = fc as unknown as Maker
  const acts = make.array(actsOf(make, stores, step), {
    minLength: 1,
    maxLength: ACTS,
    size: 'max',
  })
  const tick = {
    acts,
    settle: make.constantFrom(true, false, false),
    pass: make.constantFrom(0, 0, step / 2, ...multiples(step, 3)),
    ...(faults !== undefined && {
      fault: weighted(make, [
        [3, make.constantFrom(undefined)],
        [1, faults],
      ]),
    }),
  }
  const ofTick = record(make, tick, Object.keys(tick))
  return make.array(ofTick, { minLength: Math.ceil(ticks / 4), maxLength: ticks, size: 'max' }) as A
}

function actsOf(make: Maker, stores: number, step: number): unknown {
  const store = make.integer({ min: 0, max: stores - 1 })
  const act = (name: Act['do'], fields: object) => {
    const all = { do: make.constantFrom(name), ...fields }
    return record(make, all, Object.keys(all))
  }
  const calls = callCommands(make, step).map(
    ([weight, command]) => [weight, act('call', { store, command })] as [number, unknown],
  )
  const from = make.constantFrom(undefined, undefined, 0, 1, 3, 9)
  return weighted(make, [
    ...calls,
    [1, act('watch', { store, prefix: make.constantFrom('', 'a', 'a/', 'b'), from })],
    [3, act('watch lease', { store, lease: recent(make) })],
    [1, act('unwatch', { watch: recent(make) })],
  ])
}
