import { holders } from 'leasehold/port'
import type { ActionResult, AdminAction } from '../../src/dashboard/admin-actions.ts'
import type { AgentHold } from './agents.ts'
import { formatSpan, plural } from './format.ts'
import type { ClaimRow, KeyRow, LeaseRow, Mirror } from './mirror.ts'
import { candidateOf, decode } from './recipes/recipe-functions.ts'

/** An admin action that the dialog proposes, with its consequences. */
export interface ProposedAction {
  readonly title: string
  readonly button: string
  /** Whether it takes nothing away. */
  readonly isHarmless?: boolean
  /** One sentence for each consequence. */
  readonly consequences: readonly string[]
  /** Whether it takes effect after a period. */
  readonly hasPeriod: boolean
  /** A period that ends at this time or later would change nothing. The time may become known late. */
  before?(): number
  /** The lease that it changes, to be read again afterwards. */
  readonly lease?: string
  request(why: string, after: number): AdminAction
  /** The outcome, from the server's answer. */
  done(answer: ActionResult, after: number): string
  /** Why it would do nothing now, after changes since it was proposed. */
  obsolete?(mirror: Mirror): string | undefined
  /** Shown instead of the server's message if the target no longer exists. */
  readonly gone?: string
}

const KEYS_NAMED = 3

function named(keys: readonly string[]): string {
  const shown = keys.slice(0, KEYS_NAMED).join(', ')
  return keys.length > KEYS_NAMED ? `${shown} and ${keys.length - KEYS_NAMED} more` : shown
}

/** Who would hold these keys next. */
function nextOn(mirror: Mirror, keys: readonly string[]): string | undefined {
  const waited = keys.filter((key) => mirror.contended.has(key))
  if (waited.length === 0) return undefined
  const first = mirror.keys.get(waited[0]!)
  const next = first?.claims[first.held]
  if (waited.length === 1 && next !== undefined) {
    return `${next.holder} is next in the queue for ${waited[0]} and holds it at once.`
  }
  return `Others wait for ${waited.length} of these keys and hold them at once.`
}

const STILL_BELIEVES =
  'Its holder is notified, but may act until then: only a fencing token prevents its late writes.'

function lossOf(row: LeaseRow): string[] {
  const { keys, detail } = row
  const lost =
    keys.length === 0
      ? 'It holds no key.'
      : `It loses ${plural(keys.length, 'claim')}: ${named(keys)}.`
  const children = detail?.children ?? 0
  if (children === 0) return [lost]
  return [
    lost,
    `${plural(children, 'lease')} under it, with everything they hold, end at the same time.`,
  ]
}

/** What a lease and those under it have lost, as counted by the server. */
function lostWith({ leases = 1, claims = 0 }: ActionResult): string {
  const under = leases > 1 ? ` and ${plural(leases - 1, 'lease')} under it` : ''
  return claims === 0 && under === '' ? '' : `, with ${plural(claims, 'claim')}${under}`
}

/** Ends a lease with everything under it. For a user's session, the dialog says so. */
export function revokeLease(mirror: Mirror, row: LeaseRow): ProposedAction {
  const user = sessionOf(mirror, row)
  if (user !== undefined) return endSession(row, user)
  const next = nextOn(mirror, row.keys)
  return {
    title: `End the lease of ${row.holder}`,
    button: 'End it now',
    consequences: [
      `The lease ${row.id} ends at once and cannot be renewed.`,
      ...lossOf(row),
      ...(next === undefined ? [] : [next]),
      STILL_BELIEVES,
    ],
    hasPeriod: false,
    lease: row.id,
    request: (why) => ({ action: 'revoke', lease: row.id, why }),
    done: (answer) => `The lease of ${row.holder} has ended${lostWith(answer)}.`,
  }
}

const SESSION = /^session\/[^/]+\/id\//

/** The user of a session lease; `undefined` for other leases. */
function sessionOf(mirror: Mirror, { id, keys }: LeaseRow): string | undefined {
  const key = keys.find((it) => SESSION.test(it))
  if (key === undefined) return undefined
  const claim = mirror.keys.get(key)?.claims.find(({ lease }) => lease === id)
  try {
    return decode(claim as never)?.user ?? 'a user without a name'
  } catch {
    return 'a user without a name'
  }
}

function endSession(row: LeaseRow, user: string): ProposedAction {
  const others = row.keys.filter((key) => !key.startsWith('session/'))
  const children = row.detail?.children ?? 0
  return {
    title: `End the session of ${user}`,
    button: 'End the session',
    consequences: [
      `${user} is logged out at once: the next request with this session is refused.`,
      "The session's data is deleted. Other sessions of the same user continue.",
      ...(others.length > 0 ? [`It loses ${plural(others.length, 'key')}: ${named(others)}.`] : []),
      ...(children > 0 ? [`${plural(children, 'lease')} under it end at the same time.`] : []),
    ],
    hasPeriod: false,
    lease: row.id,
    request: (why) => ({ action: 'revoke', lease: row.id, why }),
    done: () => `The session of ${user} has ended: ${user} is logged out.`,
  }
}

export function breakLease(mirror: Mirror, row: LeaseRow): ProposedAction {
  const next = nextOn(mirror, row.keys)
  return {
    title: `Break the lease of ${row.holder}`,
    button: 'Break it',
    consequences: [
      `The lease ${row.id} gets a final deadline that no renewal can pass. Until then it is held.`,
      'Its holder is notified now and can finish its work.',
      ...((row.detail?.endOfLife ?? Infinity) < Infinity
        ? ['It already has a final deadline: only an earlier one changes anything.']
        : []),
      ...lossOf(row),
      ...(next === undefined ? [] : [next.replace(' at once', ' then')]),
    ],
    hasPeriod: true,
    before: () => row.detail?.endOfLife ?? Infinity,
    lease: row.id,
    request: (why, after) => ({ action: 'break', lease: row.id, after, why }),
    done: (_, after) => `The lease of ${row.holder} ends in ${formatSpan(after)}, renewed or not.`,
  }
}

/** Asks an agent to give a hold back. */
export function askForHold({ agent, things, key, token }: AgentHold): ProposedAction {
  return {
    title: `Ask ${agent} for ${named(things)}`,
    button: 'Ask for it',
    isHarmless: true,
    consequences: [
      `${agent} reads your reason with the next answer of any tool, and is asked to bring its work to a safe end and release it.`,
      'Nothing is taken away. The request ends after 15 minutes.',
    ],
    hasPeriod: false,
    gone: `${agent} no longer has it`,
    request: (why) => ({ action: 'ask', key, token, why }),
    done: () => `${agent} was asked for ${named(things)}.`,
  }
}

/** Breaks a hold of an agent; others wait for it. */
export function breakHold(
  mirror: Mirror,
  { agent, things, lease }: AgentHold,
  waiters: readonly string[],
): ProposedAction | undefined {
  const row = mirror.leases.get(lease)
  if (row === undefined) return undefined
  const [next] = waiters
  return {
    ...breakLease(mirror, row),
    title: `Break the hold of ${agent} on ${named(things)}`,
    consequences: [
      `${agent} loses ${named(things)} after a final deadline that no renewal can pass. Until then it is held.`,
      `The process of ${agent} notices it now; its model reads your reason with the next answer of any tool.`,
      'What it has not saved by then may be lost or be written too late: ask for it first.',
      next === undefined ? 'Nobody waits for it.' : `${next} waits for it, and gets it then.`,
    ],
    done: (_, after) => `The hold of ${agent} on ${named(things)} ends in ${formatSpan(after)}.`,
  }
}

/** Takes a key from the holder with this fencing token, or from the first holder. */
export function takeKey(row: KeyRow, token = row.claims[0]?.token): ProposedAction | undefined {
  const holder = row.claims.slice(0, row.held).find((claim) => claim.token === token)
  if (holder === undefined) return undefined
  const term = termOf(row, holder)
  if (term !== undefined) return term
  return {
    title: `Take ${row.key} from ${holder.holder}`,
    button: 'Take it away',
    consequences: [
      `${holder.holder} loses this key at once. Its lease stays, with everything else that it holds.`,
      ...afterwards(row, holder),
      STILL_BELIEVES,
    ],
    ...takeClaim(row.key, holder),
    done: () => `${holder.holder} has lost ${row.key}.`,
  }
}

/** The common part of every action that revokes one claim. */
function takeClaim(key: string, { token, holder, lease }: ClaimRow) {
  const gone = `${holder} no longer holds it`
  return {
    hasPeriod: false,
    lease,
    gone,
    request: (why: string): AdminAction => ({ action: 'take', key, token, why }),
    obsolete: (mirror: Mirror) => {
      const now = mirror.keys.get(key)
      const holding = now?.claims.slice(0, now.held) ?? []
      if (holding.some((claim) => claim.token === token)) return undefined
      const [first] = holding
      return `${gone}: ${first === undefined ? 'nobody does' : `${first.holder} does`} now.`
    },
  }
}

/** Who holds a key after one of its holders has lost it. */
function afterwards(row: KeyRow, lost: ClaimRow): string[] {
  const rest = row.claims.filter((claim) => claim !== lost)
  const stay = row.held - 1
  const [next] = rest.slice(stay)
  const said: string[] = []
  if (stay === 1) said.push(`${rest[0]!.holder} keeps holding it.`)
  if (stay > 1) said.push(`${stay} others keep holding it.`)
  if (next === undefined) said.push(stay === 0 ? 'Nobody waits: the key is free.' : 'Nobody waits.')
  else if (holders(rest) > stay) {
    said.push(
      `${next.holder} is next in the queue and holds it at once, with the higher token ${next.token}.`,
    )
  } else said.push(`${next.holder} is next in the queue and keeps waiting.`)
  return said
}

const ELECTION = /^election\/(.+)\/line$/

/** Ends the term of a leader; `undefined` for other keys. */
function termOf(row: KeyRow, claim: ClaimRow): ProposedAction | undefined {
  const election = ELECTION.exec(row.key)?.[1]
  if (election === undefined) return undefined
  const { candidate, leads } = candidateOf(claim)
  if (!leads) return undefined
  const next = row.claims[row.held]
  return {
    title: `End the term of ${candidate} in ${election}`,
    button: 'End its term',
    consequences: [
      `${candidate} stops leading ${election} at once. Its lease stays, with everything else that it holds.`,
      next === undefined
        ? 'There is no other candidate, so nobody leads until one campaigns.'
        : `${candidateOf(next).candidate} is next in the queue and leads, with the higher term ${next.token}.`,
      'The leader is notified, but may act until then: only the term as a fencing token prevents its late writes.',
    ],
    ...takeClaim(row.key, claim),
    gone: `${candidate} no longer leads`,
    done: () => `The term of ${candidate} in ${election} has ended.`,
  }
}

export function drainInstance(
  service: string,
  instance: string,
  healthyLeft: number,
): ProposedAction {
  const left =
    healthyLeft === 0
      ? `No healthy instance of ${service} is left, so discovery finds none.`
      : `${plural(healthyLeft, 'healthy instance')} of ${service} ${healthyLeft === 1 ? 'is' : 'are'} left.`
  return {
    title: `Drain ${service}/${instance}`,
    button: 'Drain it',
    consequences: [
      'It becomes critical and discovery leaves it out at once. Its current work continues.',
      left,
      'It stays drained until it is returned or registers again.',
    ],
    hasPeriod: false,
    gone: 'it is no longer registered',
    request: (why) => ({ action: 'drain', service, instance, why }),
    done: () => `${service}/${instance} is drained: discovery leaves it out.`,
  }
}

export function returnInstance(service: string, instance: string): ProposedAction {
  return {
    title: `Return ${service}/${instance} to service`,
    button: 'Return it',
    consequences: ['Its health checks and its own reports count again at once.'],
    hasPeriod: false,
    gone: 'it is no longer drained',
    request: (why) => ({ action: 'return', service, instance, why }),
    done: () => `${service}/${instance} is back: its checks and reports count again.`,
  }
}

/** The periods that the dialog offers. */
export const PERIODS = [5000, 30_000, 60_000, 300_000, 1_800_000].map((ms) => ({
  ms,
  text: formatSpan(ms),
}))
