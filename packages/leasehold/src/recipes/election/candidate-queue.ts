import { invalid, type Key, show, type Time, type Token } from '../../port/index.ts'
import { objectIn } from '../json.ts'

/**
 * Who leads, who is preferred and who must make room: pure functions of the line, on which everyone
 * who looks agrees. A candidate is a claim on the election's key; what it wants is in its value.
 */
export interface Candidacy {
  /** Who it is to others: what `handOver` names. */
  readonly candidate: string
  /** The higher is preferred. */
  readonly priority: number
  /** It asks a sitting leader of a lower priority to step down. */
  readonly preempt: boolean
  /** What it publishes, such as its address. */
  readonly value: string | undefined
}

export interface Candidate extends Candidacy {
  /** The holder of the claim: the client that campaigns. */
  readonly holder: string
  readonly token: Token
  /** Since when it is at the front, on the store's clock. */
  readonly since: Time | undefined
  /**
   * It has taken the term. To be at the front is not enough: whoever finds a preferred candidate
   * behind passes the front without ever leading.
   */
  readonly leads: boolean
}

/** The one who leads, as others see it. */
export interface Leader {
  readonly candidate: string
  /** The client that it campaigns by. */
  readonly holder: string
  /** The number of its term, which is its fencing token. */
  readonly term: Token
  readonly value: string | undefined
  readonly priority: number
  /** Since when, on the store's clock: to show, not to compare. */
  readonly since: Time
  /** How many milliseconds ago the store was last heard of, when this was told. */
  readonly age: number
}

/** The keys of an election, and the prefix that both are under. */
export interface ElectionKeys {
  readonly name: string
  readonly prefix: string
  /** The candidates. */
  readonly queue: Key
  /** While a term is handed over: who is to follow. */
  readonly successor: Key
}

export function electionKeys(name: string): ElectionKeys {
  const prefix = `election/${name}/`
  return { name, prefix, queue: `${prefix}line`, successor: `${prefix}successor` }
}

/** A claim as it is read or seen: these of its fields are looked at. */
export interface Claimed {
  readonly holder: string
  readonly token: Token
  readonly value?: string | undefined
  readonly claimedAt: Time
  readonly heldSince?: Time | undefined
}

/** What a candidate publishes. */
export function checkValue(value: unknown): void {
  if (value === undefined || typeof value === 'string') return
  throw invalid(`value is ${show(value)}: it must be a text; write objects as JSON`)
}

/** What a candidate writes on its claim. */
export function candidacyJson(candidacy: Candidacy, leads: boolean): string {
  const { candidate, priority, preempt, value } = candidacy
  return JSON.stringify({ candidate, priority, preempt, leads, value })
}

/** A claim that no candidate wrote is a candidate without wishes, which never says that it leads. */
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

/** Whom the leader names to follow it, read from the first claim on the key for it. */
export function successorOf(claims: readonly Claimed[]): string | undefined {
  const { to } = objectIn(claims[0]?.value) ?? {}
  return typeof to === 'string' ? to : undefined
}

/** The one who leads, if the first in line has taken the term. */
export function leaderOf(claims: readonly Claimed[], age: number): Leader | undefined {
  const [first] = claims
  if (first === undefined) return undefined
  const { candidate, holder, token: term, value, priority, since, leads } = candidateOf(first)
  if (!leads) return undefined
  return { candidate, holder, term, value, priority, since: since ?? first.claimedAt, age }
}

/**
 * The one behind this token who goes first: whoever is named to follow, whatever the priorities;
 * otherwise the first of those with the highest priority, if that is above one's own. Whoever is at
 * the front and sees one releases and claims again, behind it. The one who is preferred to all sees
 * none, so this comes to an end.
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

/** The one whom the leader with this token must make room for. */
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
