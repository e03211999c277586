import {
  type Capped,
  type Clock,
  type End,
  LeaseholdError,
  type LeaseId,
  type Lost,
  type Renewed,
} from '../../../port/index.ts'
import type { Database } from '../database.ts'
import { CLOSED } from '../faults.ts'
import { numberOf, readEnd } from './answers.ts'
import { CallDeadlines, type Due, unanswered, unsent } from './call-deadlines.ts'

/** Leases in one statement, unless a single call has more. */
const BATCH_LEASES = 10_000
/** Two renewals of one lease wait for each other, so more would not help. */
const BATCHES_MAX = 2

interface Call extends Due {
  readonly leases: readonly LeaseId[]
  readonly resolve: (answer: Renewed) => void
}

type Answer = readonly [
  lost: readonly (readonly [lease: number, end: End | null])[],
  capped: readonly (readonly [lease: number, remaining: number, end: End | null])[],
]

const NOTHING: Renewed = { lost: [], capped: [] }

/** The renewals: those of one turn, or that arrived while statements were in flight, are one statement. */
export class Renewals {
  readonly #database: Database
  readonly #clock: Clock
  readonly #timeout: number
  readonly #waiting: Call[] = []
  readonly #deadlines: CallDeadlines
  #underWay = 0
  #leaving = false
  #closed = false

  constructor(database: Database, clock: Clock, timeout: number) {
    this.#database = database
    this.#clock = clock
    this.#timeout = timeout
    this.#deadlines = new CallDeadlines(clock, () => unsent(timeout))
  }

  renew(leases: readonly LeaseId[]): Promise<Renewed> {
    if (this.#closed) return Promise.reject(LeaseholdError.from(CLOSED))
    return new Promise((resolve, reject) => {
      const deadline = this.#clock.now() + this.#timeout
      this.#waiting.push({ leases, deadline, resolve, reject })
      this.#deadlines.start(this.#waiting)
      this.#leaveSoon()
    })
  }

  close(): void {
    this.#closed = true
    this.#deadlines.stop()
    for (const { reject } of this.#waiting.splice(0)) reject(LeaseholdError.from(CLOSED))
  }

  #leaveSoon(): void {
    if (this.#leaving || this.#underWay >= BATCHES_MAX) return
    this.#leaving = true
    this.#clock.defer(() => {
      this.#leaving = false
      if (this.#waiting.length > 0) void this.#leave()
    })
  }

  async #leave(): Promise<void> {
    const batch = this.#batch()
    if (batch.length === 0) return
    const last = batch.at(-1)!.deadline
    const deadlines = new CallDeadlines(this.#clock, () => unanswered(this.#timeout))
    deadlines.start([...batch])
    const ids = new Set(batch.flatMap(({ leases }) => leases.map(numberOf)))
    ids.delete(0)
    this.#underWay++
    try {
      const values = [`{${[...ids].join(',')}}`]
      const answer: Answer =
        ids.size === 0
          ? [[], []]
          : await this.#database.ask('renew($1::text::bigint[])', values, last)
      for (const { leases, resolve } of batch) resolve(exceptionsOf(leases, answer))
    } catch (error) {
      for (const { reject } of batch) reject(error as LeaseholdError)
    }
    deadlines.stop()
    this.#underWay--
    if (this.#waiting.length > 0) this.#leaveSoon()
  }

  #batch(): Call[] {
    this.#deadlines.expire()
    let leases = 0
    let count = 0
    for (; count < this.#waiting.length; count++) {
      leases += this.#waiting[count]!.leases.length
      if (leases > BATCH_LEASES && count > 0) break
    }
    const batch = this.#waiting.splice(0, count)
    this.#deadlines.restart(this.#waiting)
    return batch
  }
}

/** The parts of the answer about these leases, in their order. */
function exceptionsOf(leases: readonly LeaseId[], [lost, capped]: Answer): Renewed {
  if (lost.length === 0 && capped.length === 0 && leases.every((id) => numberOf(id) !== 0)) {
    return NOTHING
  }
  const ends = new Map(lost.map(([lease, end]) => [lease, readEnd(end)]))
  const caps = new Map(capped.map((each) => [each[0], each]))
  const answer = { lost: [] as Lost[], capped: [] as Capped[] }
  for (const lease of leases) {
    const number = numberOf(lease)
    const cap = caps.get(number)
    if (number === 0 || ends.has(number)) answer.lost.push({ lease, end: ends.get(number) })
    else if (cap) answer.capped.push({ lease, remaining: cap[1], end: readEnd(cap[2]) })
  }
  return answer
}
