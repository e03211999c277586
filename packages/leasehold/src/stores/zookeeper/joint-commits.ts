import { isLeaseholdError } from '../../port/index.ts'
import { failureOf, type Journal } from './journal.ts'
import type { Part, Plan } from './plan.ts'
import { type Entry, encode } from './records.ts'
import { KeeperFault, multi, type Op, sizeOf } from './wire/index.ts'

/** So many are carried out as one at most, and only while they are this small together. */
const TOGETHER_MOST = 32
const TOGETHER_BYTES = 128 * 1024

interface Waiting {
  readonly name: string
  readonly plan: Plan
  readonly resolve: (zxid: number) => void
  readonly reject: (error: unknown) => void
}

/**
 * Gathers the changes of one turn of the event loop and carries them out as one transaction, which
 * costs three servers far less than a transaction each. Where a part of one fails, that one is told,
 * and the others are carried out without it.
 *
 * All of them happen in one transaction, so this is not for claims, whose token is its number. Each
 * has its own entry in the journal, to be found by who asks again; the events of all are in the
 * first, so that those who watch are told all of a revision at once.
 */
export class JointCommits {
  readonly #journal: Journal
  #waiting: Waiting[] = []
  #bytes = 0
  /** What those that wait write: of two that write the same, the later must see the former. */
  #written = new Set<string>()

  constructor(journal: Journal) {
    this.#journal = journal
  }

  /** Carries out a plan whose answer is nothing but its revision, and answers with that. */
  commit(name: string, plan: Plan): Promise<number> {
    return new Promise((resolve, reject) => {
      const told = Buffer.byteLength(JSON.stringify(plan.events))
      const bytes = plan.ops.reduce((sum, op) => sum + sizeOf(op), told)
      const paths = [this.#journal.tree.paths.entry(name), ...plan.ops.map(({ path }) => path)]
      const fits = this.#bytes + bytes <= TOGETHER_BYTES
      if (!fits || paths.some((path) => this.#written.has(path))) this.#send()
      for (const path of paths) this.#written.add(path)
      this.#bytes += bytes
      const count = this.#waiting.push({ name, plan, resolve, reject })
      if (count === 1) this.#journal.clock.defer(() => this.#send())
      else if (count === TOGETHER_MOST) this.#send()
    })
  }

  #send(): void {
    const all = this.#waiting
    this.#waiting = []
    this.#written = new Set()
    this.#bytes = 0
    if (all.length > 1) void this.#together(all)
    else if (all.length === 1) this.#alone(all[0]!)
  }

  #alone({ name, plan, resolve, reject }: Waiting): void {
    this.#journal.commit(name, plan, { revision: -1 }).then(({ zxid }) => resolve(zxid), reject)
  }

  async #together(all: readonly Waiting[]): Promise<void> {
    const { tree, acl } = this.#journal
    const steps = this.#steps(all)
    try {
      const ops = steps.map(({ op }) => op)
      const { zxid } = await tree.main.call(multi(ops, acl))
      for (const { resolve } of all) {
        this.#journal.onWritten?.()
        resolve(zxid)
      }
    } catch (error) {
      const failed = error instanceof KeeperFault ? steps[error.index] : undefined
      failed?.of.reject(failureOf(error as KeeperFault, failed.part))
      const isRefused = failed !== undefined || isLeaseholdError(error, 'limit-exceeded')
      for (const each of all) {
        if (!isRefused) each.reject(error)
        else if (each !== failed?.of) this.#alone(each)
      }
    }
  }

  #steps(all: readonly Waiting[]): { op: Op; part: Part; of: Waiting }[] {
    const events = all.flatMap(({ plan }) => plan.events)
    return all.flatMap((of, at) => {
      const answer = { revision: -1 }
      const entry: Entry =
        at === 0 ? { answer, events } : { answer, events: [], isToldByFirst: true }
      const path = this.#journal.tree.paths.entry(of.name)
      const made: Op = { do: 'create', path, data: encode(entry), kind: 'persistent' }
      const steps = of.plan.ops.map((op, index) => ({ op, part: of.plan.parts[index]!, of }))
      return [{ op: made, part: 'entry' as const, of }, ...steps]
    })
  }
}
