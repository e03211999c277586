import type { ErrorCode, Limits, Revision } from '../../port/index.ts'
import { type Entry, type History, type Outcome, show } from './history.ts'
import { type Expected, Model } from './model.ts'
import { NameMatcher, type Times } from './name-matcher.ts'
import { missedNotice, type NoticeRules } from './notices.ts'

/** What a store promises beyond the port, and what cannot be known of it from outside. */
export interface Rules extends NoticeRules {
  /** The limits that the store was opened with, if they are not the defaults. */
  readonly limits?: Partial<Limits> | undefined
  /** It runs the kernel itself: its revisions and tokens are the model's, starting after this one. */
  readonly exactAfter?: Revision | undefined
  /** Each store carries out its calls, or also its watches, in the order in which they were made. */
  readonly inOrder: 'all' | 'calls' | 'none'
  readonly times: Times
  /**
   * It writes its changes in order, and a crash may lose the last of them if they were not reported:
   * calls and expiries alike, all after some moment.
   */
  readonly crashLosesTheLast?: boolean | undefined
  /** An outcome that is unknown at the very moment of the call was not carried out. */
  readonly failsAtOnce?: boolean | undefined
  /** It may refuse any call with these codes during a fault. */
  readonly mayRefuseWith?: readonly ErrorCode[] | undefined
}

/** With more steps than this, the search is aborted. */
const STEPS_MAX = 50_000

/**
 * What comes next: a call is carried out, or never is; or, before it, the next lease expires, or all
 * later changes are lost in a crash.
 */
type Decision = { readonly entry: Entry; readonly how: 'run' | 'skip' | 'expire' | 'lose' }

/**
 * Fails unless there is an order of the calls in which the model gives exactly the answers, notices
 * and readings of the stores. In that order, a call that ended before another began comes first. A
 * call with an unknown outcome comes anywhere after it was made, or nowhere.
 */
export function judge(history: History, rules: Rules): void {
  if (history.faults.length > 0) throw new Error(history.faults.join('\n'))
  new Search(history, rules).run()
}

class Search {
  readonly #entries: readonly Entry[]
  readonly #rules: Rules
  readonly #path: Decision[] = []
  readonly #placed = new Set<Entry>()
  /** The latest beginning of an ordered call, after each decision of the path. */
  readonly #reached: number[] = [-1]
  /** States from which no order was found. */
  readonly #hopeless = new Set<string>()
  #model!: Model
  #matcher!: NameMatcher
  #expected!: Map<Entry, Expected>
  /** The calls that changed the model so far, in order. */
  #changes = ''
  /** From here until the restart every change was lost: see `Rules.crashLosesTheLast`. */
  #lost = false
  /** The model is not that of the path: a decision was undone. */
  #outdated = true
  #steps = 0
  #furthest: { readonly length: number; readonly text: string } = { length: -1, text: '' }

  constructor(history: History, rules: Rules) {
    this.#entries = history.entries.flatMap(withRepetition)
    this.#rules = rules
  }

  run(): void {
    if (this.#extend()) return
    const isGivenUp = this.#steps > STEPS_MAX
    const outcome = isGivenUp
      ? `the search for an order of the calls was given up after ${STEPS_MAX} steps`
      : 'no order of the calls explains what the store said'
    throw new Error(`${outcome}. ${this.#furthest.text}`)
  }

  /** Looks for an order that begins with the path. */
  #extend(): boolean {
    if (++this.#steps > STEPS_MAX) return false
    this.#rebuild()
    const window = this.#window()
    const before = this.#leftBehind
    const state = `${before}|${window.map(({ number }) => number).join()}`
    if (this.#hopeless.has(state)) return false
    if (!window.some(isAnswered) && this.#isComplete()) return true
    for (const decision of this.#decisions(window)) {
      this.#rebuild()
      const difference = this.#apply(decision)
      if (difference !== undefined) {
        this.#outdated = true
        this.#noteFailure(decision, difference)
        continue
      }
      const isForced = before === this.#leftBehind && this.#isBestNow(decision, window)
      this.#path.push(decision)
      if (isPlaced(decision)) this.#placed.add(decision.entry)
      this.#reached.push(Math.max(this.#reached.at(-1)!, decision.entry.begun))
      if (this.#extend()) return true
      this.#path.pop()
      this.#reached.pop()
      if (isPlaced(decision)) this.#placed.delete(decision.entry)
      this.#outdated = true
      if (isForced) break
    }
    this.#hopeless.add(state)
    return false
  }

  /** Everything that decides what comes next, except for which calls are left. */
  get #leftBehind(): string {
    return `${this.#changes}|${this.#model.traces}|${this.#lost}`
  }

  /**
   * Whether a call that changed nothing need not be tried later, too: every order that has it later
   * also works with it now, because nothing that is left must come before it. The notices of a watch
   * depend on when it began. Without exact revisions, an answer could mean another moment.
   */
  #isBestNow({ entry, how }: Decision, window: readonly Entry[]): boolean {
    if (this.#rules.exactAfter === undefined || how !== 'run' || !isAnswered(entry)) return false
    if (entry.asked.method === 'watch' || entry.asked.method === 'restart') return false
    return window.every(({ latest, time }) => latest >= entry.begun && time >= entry.time)
  }

  /** The calls without a position before which no other must come, because it ended sooner. */
  #window(): Entry[] {
    const window: Entry[] = []
    const reached = this.#reached.at(-1)!
    let firstEnd = Infinity
    for (const entry of this.#entries) {
      // It came too late, so it was never carried out.
      if (this.#placed.has(entry) || entry.latest <= reached) continue
      if (entry.begun > firstEnd) break
      window.push(entry)
      if (isAnswered(entry)) firstEnd = Math.min(firstEnd, entry.ended)
    }
    return window
  }

  /** What may come next, the most likely first. */
  #decisions(window: readonly Entry[]): Decision[] {
    const next = this.#inOrder(window)
    // Of those with a revision, only the one with the lowest can be next.
    const lowest = Math.min(...next.map(revisionOf))
    const likely = next.filter((entry) => {
      const revision = revisionOf(entry)
      return revision === Infinity || revision === lowest
    })
    // Certain steps come first: an unnecessary guess may be noticed only much later.
    const ordered = [...likely.filter(isAnswered).sort(byEnd), ...likely.filter(isUnknown)]
    const decisions = ordered.flatMap((entry) => this.#waysOf(entry))
    const first = decisions[0]?.entry
    if (first === undefined || first.mustBeOnTime || this.#lost) return decisions
    if (!this.#rules.crashLosesTheLast || this.#model.nextDeadline > first.time) return decisions
    const expire = { entry: first, how: 'expire' } as const
    if (isUnknown(first) || first.asked.method === 'restart') return [expire, ...decisions]
    // An answered call has changed nothing if what expired before it was lost.
    return [...decisions, expire, { entry: first, how: 'lose' }]
  }

  /** An unseen change cannot have happened if the next answer has an earlier revision. */
  #isTooFar(): string | undefined {
    if (this.#rules.exactAfter === undefined || this.#model.revision <= this.#ceiling()) return
    return `the model is at revision ${this.#model.revision}, and the store was not`
  }

  /** The highest revision that the next answer with a revision allows. */
  #ceiling(): Revision {
    for (const entry of this.#entries) {
      if (this.#placed.has(entry) || !isAnswered(entry)) continue
      // A request may have been answered before, at another revision.
      const isRepeatable = 'request' in (entry.asked.argument as object)
      const revision = revisionOf(entry)
      if (isRepeatable || entry.asked.method === 'watch' || revision === Infinity) continue
      return isCertainChange(entry) ? revision - 1 : revision
    }
    return Infinity
  }

  /** For each store, the first call that is left, and those that need not be carried out in order. */
  #inOrder(window: readonly Entry[]): readonly Entry[] {
    const { inOrder } = this.#rules
    const blocked = new Set<number>()
    return window.filter((entry) => {
      const isFree = inOrder !== 'all' && (inOrder === 'none' || entry.asked.method === 'watch')
      if (isFree || entry.isFree) return true
      const isFirst = !blocked.has(entry.store)
      if (isAnswered(entry) || isChange(entry)) blocked.add(entry.store)
      return isFirst
    })
  }

  #waysOf(entry: Entry): Decision[] {
    const { asked, outcome } = entry
    const [run, skip] = [{ entry, how: 'run' } as const, { entry, how: 'skip' } as const]
    const { inOrder, mayRefuseWith = [], failsAtOnce } = this.#rules
    if (outcome?.is === 'refused' && mayRefuseWith.includes(outcome.code)) return [skip]
    if (isAnswered(entry)) return [run]
    if (asked.method === 'read' || asked.method === 'watch') return []
    // A renewal writes nothing, so nothing prevents it from being carried out.
    if (failsAtOnce && entry.wasAtOnce && asked.method !== 'renew') return [skip]
    if (this.#lost) return [skip]
    // In order it is now or never; otherwise it may still come later.
    return inOrder !== 'none' && !entry.isFree ? [run, skip] : [run]
  }

  /** Lets the model carry it out. Returns how the model's answer differs, if it does. */
  #apply({ entry, how }: Decision): string | undefined {
    const { crashLosesTheLast = false, failsAtOnce, times } = this.#rules
    const model = this.#model
    if (how === 'skip') {
      if (!isAnswered(entry) && !entry.wasAtOnce) this.#lost = crashLosesTheLast
      return undefined
    }
    if (how === 'lose') {
      this.#lost = true
      return undefined
    }
    if (how === 'expire') {
      if (!model.expireNext(entry.time)) return 'nothing is due'
      this.#changes += ',expire'
      return this.#isTooFar()
    }
    const { method } = entry.asked
    const isLost = this.#lost || (crashLosesTheLast && method === 'restart')
    if (times !== 'none' && (!isLost || entry.mustBeOnTime)) model.expireUntil(entry.time)
    if (method === 'restart') this.#lost = false
    const { revision } = model
    const field = method === 'renew' ? 'leases' : ''
    const argument = this.#matcher.translate(entry.asked.argument, field)
    const asked = { method, argument } as Entry['asked']
    const difference =
      asked.method === 'watch'
        ? this.#beginWatch(entry, asked.argument)
        : this.#compare(entry.outcome, model.run(asked, entry.time))
    if (method === 'restart' && this.#matcher.times === 'all') this.#matcher.times = 'deadlines'
    if (model.revision > revision) this.#changes += `,${entry.number}`
    // Changes are written in order. One that cannot be written for now is not a crash.
    const isAfterLoss = this.#lost && model.revision > revision && !failsAtOnce
    if (isAfterLoss) return 'it was answered, and a change before it was lost'
    return difference ?? (isAnswered(entry) ? undefined : this.#isTooFar())
  }

  #beginWatch(
    entry: Entry,
    target: Extract<Entry['asked'], { method: 'watch' }>['argument'],
  ): string | undefined {
    const { first, expected } = this.#model.watch(target)
    this.#expected.set(entry, expected)
    const isForgotten = entry.received[0]?.type === 'compacted'
    if (isForgotten && expected.of === 'prefix' && this.#model.mayForget(expected.after)) {
      return undefined
    }
    if (isForgotten && first.type === 'compacted') return undefined
    return this.#compare(entry.outcome, first)
  }

  #compare(outcome: Outcome | undefined, expected: object): string | undefined {
    if (outcome?.is === 'answered') return this.#matcher.difference(outcome.answer, expected)
    if (outcome?.is !== 'refused') return undefined
    const { code, end } = outcome
    return this.#matcher.difference({ code, end }, expected)
  }

  /** All calls are ordered: now all notices of the watches must match, too. */
  #isComplete(): boolean {
    for (const [entry, expected] of this.#expected) {
      const missed = missedNotice(entry, expected, this.#model, this.#matcher, this.#rules)
      if (missed === undefined) continue
      this.#noteFailure({ entry, how: 'run' }, missed)
      return false
    }
    return true
  }

  #rebuild(): void {
    if (!this.#outdated) return
    const { exactAfter, limits, times } = this.#rules
    this.#model = new Model(limits, exactAfter ?? 0)
    this.#matcher = new NameMatcher(exactAfter !== undefined, times)
    this.#expected = new Map()
    this.#changes = ''
    this.#lost = false
    for (const decision of this.#path) this.#apply(decision)
    this.#outdated = false
  }

  #noteFailure(decision: Decision, difference: string): void {
    if (this.#path.length < this.#furthest.length) return
    const before = this.#path.slice(-12).map(({ entry, how }) => `  ${how} ${show(entry)}`)
    const text = [
      'The longest one ends with',
      ...before,
      'and then',
      `  ${show(decision.entry)}`,
      `differs from the model: ${difference}`,
    ]
    this.#furthest = { length: this.#path.length, text: text.join('\n') }
  }
}

/** A renewal whose answer was lost with its connection is sent again, and is carried out twice. */
function withRepetition(entry: Entry): Entry[] {
  if (!entry.isFree || entry.asked.method !== 'renew' || !isAnswered(entry)) return [entry]
  const outcome = { is: 'unknown', why: 'its answer was lost' } as const
  return [{ ...entry, number: entry.number + 0.5, outcome }, entry]
}

/** It was carried out, so it must have a position. */
function isAnswered({ outcome }: Entry): boolean {
  return outcome !== undefined && outcome.is !== 'unknown'
}

function isPlaced({ how }: Decision): boolean {
  return how === 'run' || how === 'skip'
}

function isUnknown(entry: Entry): boolean {
  return !isAnswered(entry)
}

function byEnd(one: Entry, other: Entry): number {
  return one.ended - other.ended
}

function isChange({ asked }: Entry): boolean {
  return asked.method !== 'read' && asked.method !== 'watch'
}

/** Its answer says that it made a new revision. */
function isCertainChange({ asked: { method }, outcome }: Entry): boolean {
  if (method === 'release' || method === 'update') return true
  const { answer } = outcome as { answer: { outcome?: string } }
  return answer.outcome === 'granted' || answer.outcome === 'claimed'
}

/** The revision of the answer; infinite if it has none. */
function revisionOf({ outcome }: Entry): number {
  const answer = outcome?.is === 'answered' ? outcome.answer : {}
  return 'revision' in answer ? (answer.revision as number) : Infinity
}
