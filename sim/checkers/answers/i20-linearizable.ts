import type { Checker, Truth, Violated } from '../checker.js'
import type { Call } from '../history.js'

/**
 * I20: the calls on a key could have happened one after the other, each at some moment between its
 * sending and its answer. An unanswered call may have happened at any later moment, or never. A
 * lease that could have expired may have.
 *
 * The search is that of Wing and Gong: try every call that may be next, and backtrack from dead
 * ends. It remembers the states that it has tried.
 */
export function linearizable(violated: Violated): Checker {
  let truth: Truth | undefined
  return {
    name: 'I20 linearizable',
    called(_call, now) {
      truth = now
    },
    finish({ calls }) {
      const renewals = renewalsOf(calls)
      const byKey = new Map<string, Call[]>()
      for (const call of calls) {
        if (call.kind !== 'claim' && call.kind !== 'release') continue
        const own = byKey.get(call.key)
        if (own) own.push(call)
        else byKey.set(call.key, [call])
      }
      for (const [key, own] of byKey) {
        const search = new Search(own, renewals, truth?.serverRate ?? 1)
        if (!search.possible()) violated(`${key}: no order explains its ${own.length} calls`)
      }
    },
  }
}

/** The answered grants and renewals of each lease. */
function renewalsOf(calls: readonly Call[]): Map<string, Call[]> {
  const renewals = new Map<string, Call[]>()
  for (const call of calls) {
    if (call.kind !== 'renew' && call.kind !== 'grant') continue
    if (call.answer?.type !== 'done') continue
    const { lease } = call.answer
    const own = renewals.get(lease)
    if (own) own.push(call)
    else renewals.set(lease, [call])
  }
  return renewals
}

/** The holder of the key: its token and lease, or none. */
interface State {
  readonly token: number
  readonly lease: string
}

const FREE: State = { token: 0, lease: '' }
const UNKNOWN = -1
const STEPS_MAX = 200_000

class Search {
  readonly #calls: readonly Call[]
  readonly #renewals: ReadonlyMap<string, readonly Call[]>
  readonly #rate: number
  readonly #tried = new Set<string>()
  readonly #done: boolean[]
  #steps = 0

  constructor(
    calls: readonly Call[],
    renewals: ReadonlyMap<string, readonly Call[]>,
    rate: number,
  ) {
    this.#calls = [...calls].sort((a, b) => a.invoked - b.invoked)
    this.#renewals = renewals
    this.#rate = rate
    this.#done = this.#calls.map(() => false)
  }

  possible(): boolean {
    return this.#from(0, FREE)
  }

  /** Whether the remaining calls could happen from here; those before `start` are placed. */
  #from(start: number, state: State): boolean {
    let first = start
    while (first < this.#calls.length && this.#done[first]) first++
    if (this.#allPlaced(first)) return true
    // A search that takes too long is undecided, never a violation.
    if (++this.#steps > STEPS_MAX) return true
    if (this.#tried.size > 0 && this.#tried.has(this.#where(first, state))) return false
    const deadline = this.#firstAnswer(first)
    for (let at = first; at < this.#calls.length; at++) {
      const call = this.#calls[at]!
      if (call.invoked > deadline) break
      if (this.#done[at]) continue
      for (const next of this.#after(call, state)) {
        this.#done[at] = true
        if (this.#from(first, next)) return true
        this.#done[at] = false
      }
    }
    this.#tried.add(this.#where(first, state))
    return false
  }

  /** Created at the first dead end; most histories are explained at once. */
  #where(first: number, { token }: State): string {
    let where = `${token} ${first} `
    for (let at = first; at < this.#done.length; at++) where += this.#done[at] ? '1' : '0'
    return where
  }

  /** Unanswered calls need not have happened. */
  #allPlaced(first: number): boolean {
    for (let at = first; at < this.#calls.length; at++) {
      if (!this.#done[at] && this.#calls[at]!.answer) return false
    }
    return true
  }

  #firstAnswer(first: number): number {
    let earliest = Infinity
    for (let at = first; at < this.#calls.length; at++) {
      if (!this.#done[at]) earliest = Math.min(earliest, this.#calls[at]!.answered)
    }
    return earliest
  }

  /** The possible states of the key after this call, if it can be next. */
  #after(call: Call, state: State): State[] {
    const { answer } = call
    const states = [state]
    if (state !== FREE && this.#mayHaveExpired(state.lease, call)) states.push(FREE)
    if (call.kind === 'claim') {
      if (!answer) return states.includes(FREE) ? [{ token: UNKNOWN, lease: call.lease }] : []
      if (answer.type === 'busy') return states.filter((one) => one !== FREE)
      if (answer.type !== 'done') return states
      const { token } = answer
      const rises = token > state.token
      return rises && states.includes(FREE) ? [{ token, lease: call.lease }] : []
    }
    if (!answer || answer.type === 'done') return isClaimOf(call, state) ? [FREE] : []
    // A full disk refuses in any state.
    if (answer.type === 'refused' && answer.code === 'storage-full') return states
    return states.filter((one) => one.token !== call.token || one.lease !== call.lease)
  }

  /** Whether the lease can have expired before the call was answered. */
  #mayHaveExpired(lease: string, call: Call): boolean {
    let latest = -Infinity
    let ttl = Infinity
    for (const renewal of this.#renewals.get(lease) ?? []) {
      ttl = renewal.ttl
      if (renewal.answered <= call.invoked) latest = Math.max(latest, renewal.invoked)
    }
    return call.answered >= latest + ttl / this.#rate
  }
}

/** Whether the release names this claim; the token of an unanswered claim is unknown. */
function isClaimOf({ lease, token }: Call, state: State): boolean {
  return state.lease === lease && (state.token === token || state.token === UNKNOWN)
}
