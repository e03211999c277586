import {
  invalid,
  type Key,
  type LeaseStore,
  show,
  type Time,
  type Token,
} from '../../port/index.ts'
import { objectIn } from '../values/json.ts'

/**
 * Who leads, who is preferred and who must step down: pure functions of the queue, so all processes
 * agree. A candidate is a claim on the election's key; its value says what it wants.
 */
export interface Candidacy {
  /** The name that others see and that `handOver` uses. */
  readonly candidate: string
  /** Higher is preferred. */
  readonly priority: number
  /** It asks a leader of lower priority to step down. */
  readonly preempt: boolean
  /** The value that it publishes, such as its address. */
  readonly value: string | undefined
}

export interface Candidate extends Candidacy {
  /** The client that campaigns. */
  readonly holder: string
  readonly token: Token
  /** Since when it is at the front, by the store's clock. */
  readonly since: Time | undefined
  /**
   * It has taken the term. Being at the front is not enough: a candidate that sees a preferred one
   * behind it gives up the front without ever leading.
   */
  readonly leads: boolean
}

/** The leader, as others see it. */
export interface Leader {
  readonly candidate: string
  /** The client that campaigned. */
  readonly holder: string
  /** The number of its term, which is its fencing token. */
  readonly term: Token
  readonly value: string | undefined
  readonly priority: number
  /** By the store's clock: for display, not for comparisons. */
  readonly since: Time
  /** Milliseconds since the store was last heard from, when this was read. */
  readonly age: number
}

/** The keys of an election, and their common prefix. */
export interface ElectionKeys {
  readonly name: string
  readonly prefix: string
  /** The candidates. */
  readonly queue: Key
  /** During a hand-over: the named successor. */
  readonly successor: Key
}

export function electionKeys(name: string): ElectionKeys {
  const prefix = `${ALL}${name}/`
  return { name, prefix, queue: `${prefix}line`, successor: `${prefix}successor` }
}

const ALL = 'election/'

/** The names of the elections that have a candidate. A name may contain slashes. */
export async function electionNames(store: Pick<LeaseStore, 'read'>): Promise<readonly string[]> {
  const names: string[] = []
  let after: Key | undefined
  for (let more = true; more; ) {
    const page = await store.read({ prefix: ALL, after })
    for (const { key } of page.keys) {
      const name = key.slice(ALL.length, key.lastIndexOf('/'))
      if (key === electionKeys(name).queue) names.push(name)
    }
    more = page.more
    after = page.keys.at(-1)?.key
  }
  return names
}

/** The fields of a claim that are used here. */
export interface Claimed {
  readonly holder: string
  readonly token: Token
  readonly value?: string | undefined
  readonly claimedAt: Time
  readonly heldSince?: Time | undefined
}

/** Checks the published value. */
export function checkValue(value: unknown): void {
  if (value === undefined || typeof value === 'string') return
  throw invalid(`value is ${show(value)}: it must be a string. Write objects as JSON`)
}

/** The value of a candidate's claim. */
export function candidacyJson(candidacy: Candidacy, leads: boolean): string {
  const { candidate, priority, preempt, value } = candidacy
  return JSON.stringify({ candidate, priority, preempt, leads, value })
}

/** Parses a candidate. An unreadable claim counts as one with defaults that does not lead. */
export function candidateOf(claim: Claimed): Candidate {
  const { holder, token, heldSince } = claim
  const { candidate, priority, preempt, leads, value } = objectIn(claim.value) ?? {}
  return {
    candidate: typeof candidate === 'string' ? candidate : holder,
    priority: typeof priority === 'number' ? priority : 0,
    preempt: preempt === true,
    leads: leads === true,
    value: typeof value === 'string' ? value : undefined,
    holder,
    token,
    since: heldSince,
  }
}

/** The named successor, from the first claim on its key. */
export function successorOf(claims: readonly Claimed[]): string | undefined {
  const { to } = objectIn(claims[0]?.value) ?? {}
  return typeof to === 'string' ? to : undefined
}

/** The leader, if the first in the queue has taken the term. */
export function leaderOf(claims: readonly Claimed[], age: number): Leader | undefined {
  const [first] = claims
  if (first === undefined) return undefined
  const { candidate, holder, token: term, value, priority, since, leads } = candidateOf(first)
  if (!leads) return undefined
  return { candidate, holder, term, value, priority, since: since ?? first.claimedAt, age }
}

/**
 * The candidate behind this token that should go first. That is the named successor, whatever the
 * priorities, or else the highest priority above one's own. A candidate at the front that finds one
 * joins the queue again behind it. The most preferred candidate finds none, so this ends.
 */
export function preferredBehind(
  queue: readonly Candidate[],
  token: Token,
  successor: string | undefined,
): Candidate | undefined {
  const me = queue.find((candidate) => candidate.token === token)
  if (me === undefined) return undefined
  const behind = queue.filter((other) => other.token > token)
  if (me.candidate === successor) return undefined
  const named = behind.find((other) => other.candidate === successor)
  return named ?? highest(behind, me.priority)
}

/** The candidate that the leader with this token must step down for. */
export function preemptor(queue: readonly Candidate[], token: Token): Candidate | undefined {
  const me = queue.find((candidate) => candidate.token === token)
  if (me === undefined) return undefined
  const asking = queue.filter((other) => other.token > token && other.preempt)
  return highest(asking, me.priority)
}

function highest(candidates: readonly Candidate[], above: number): Candidate | undefined {
  let best: Candidate | undefined
  for (const candidate of candidates) {
    if (candidate.priority > (best?.priority ?? above)) best = candidate
  }
  return best
}
