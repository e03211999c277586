import { holders } from 'leasehold/port'
import type { Act, Done } from '../../src/dashboard/acts.ts'
import { several, spoken } from './format.ts'
import type { ClaimRow, KeyRow, LeaseRow, Mirror } from './mirror.ts'
import { candidateOf, decode } from './recipes.ts'

/** Something that can be done to what others hold: what it is, what comes of it, and how it is done. */
export interface Deed {
  readonly title: string
  readonly button: string
  /** What will happen, one sentence each. */
  readonly consequences: readonly string[]
  /** A time can be given until it takes effect. */
  readonly hasPeriod: boolean
  /** What takes effect at this time or later would change nothing. */
  readonly before?: number
  /** The lease that it changes, to be looked at again afterwards. */
  readonly lease?: string
  act(why: string, after: number): Act
  /** What was done, by the server's answer. */
  done(answer: Done, after: number): string
  /** Why it would do nothing, by what has happened since it was proposed. */
  void?(mirror: Mirror): string | undefined
  /** What is said instead of the server's words, where what it is about is not there any more. */
  readonly gone?: string
}

const KEYS_NAMED = 3

function named(keys: readonly string[]): string {
  const shown = keys.slice(0, KEYS_NAMED).join(', ')
  return keys.length > KEYS_NAMED ? `${shown} and ${keys.length - KEYS_NAMED} more` : shown
}

/** The keys that somebody waits for and would then hold. */
function nextOn(mirror: Mirror, keys: readonly string[]): string | undefined {
  const waited = keys.filter((key) => mirror.contended.has(key))
  if (waited.length === 0) return undefined
  const first = mirror.keys.get(waited[0]!)
  const next = first?.claims[first.held]
  if (waited.length === 1 && next !== undefined) {
    return `${next.holder} is next in line for ${waited[0]}, and holds it at once.`
  }
  return `Others wait for ${waited.length} of these keys, and hold them at once.`
}

const STILL_BELIEVES =
  'Its holder is told, but may act until it has heard: only a fencing token keeps its late writes out.'

function lossOf(row: LeaseRow): string[] {
  const { keys, detail } = row
  const lost =
    keys.length === 0
      ? 'It holds no key.'
      : `It loses ${several(keys.length, 'claim')}: ${named(keys)}.`
  const children = detail?.children ?? 0
  if (children === 0) return [lost]
  return [
    lost,
    `${several(children, 'lease')} under it, and all that these hold, end in the same instant.`,
  ]
}

/** What a lease and all under it have lost, as the server has counted it. */
function lostWith({ leases = 1, claims = 0 }: Done): string {
  const under = leases > 1 ? ` and ${several(leases - 1, 'lease')} under it` : ''
  return claims === 0 && under === '' ? '' : `, with ${several(claims, 'claim')}${under}`
}

/** Ends a lease with all under it; where it is somebody's session, that is what is said. */
export function revokeLease(mirror: Mirror, row: LeaseRow): Deed {
  const user = sessionOf(mirror, row)
  if (user !== undefined) return endSession(row, user)
  const next = nextOn(mirror, row.keys)
  return {
    title: `End the lease of ${row.holder}`,
    button: 'End it now',
    consequences: [
      `The lease ${row.id} ends at once, and cannot be renewed.`,
      ...lossOf(row),
      ...(next === undefined ? [] : [next]),
      STILL_BELIEVES,
    ],
    hasPeriod: false,
    lease: row.id,
    act: (why) => ({ act: 'revoke', lease: row.id, why }),
    done: (answer) => `The lease of ${row.holder} has ended${lostWith(answer)}.`,
  }
}

const SESSION = /^session\/[^/]+\/id\//

/** Whose session a lease is; `undefined` where it is none. */
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

function endSession(row: LeaseRow, user: string): Deed {
  const others = row.keys.filter((key) => !key.startsWith('session/'))
  const children = row.detail?.children ?? 0
  return {
    title: `End the session of ${user}`,
    button: 'End the session',
    consequences: [
      `${user} is logged out at once: the next request with this session is refused.`,
      'What the session has stored is gone with it. Other sessions of the same user live on.',
      ...(others.length > 0
        ? [`It loses ${several(others.length, 'key')}: ${named(others)}.`]
        : []),
      ...(children > 0 ? [`${several(children, 'lease')} under it end in the same instant.`] : []),
    ],
    hasPeriod: false,
    lease: row.id,
    act: (why) => ({ act: 'revoke', lease: row.id, why }),
    done: () => `The session of ${user} has ended: ${user} is logged out.`,
  }
}

export function breakLease(mirror: Mirror, row: LeaseRow): Deed {
  const next = nextOn(mirror, row.keys)
  return {
    title: `Break the lease of ${row.holder}`,
    button: 'Break it',
    consequences: [
      `The lease ${row.id} gets a last deadline that no renewal can pass. Until then it is held.`,
      'Its holder is told now, and can bring its work to an end.',
      ...((row.detail?.endOfLife ?? Infinity) < Infinity
        ? ['Its life has an end already: only a sooner one changes anything.']
        : []),
      ...lossOf(row),
      ...(next === undefined ? [] : [next.replace(' at once', ' then')]),
    ],
    hasPeriod: true,
    before: row.detail?.endOfLife ?? Infinity,
    lease: row.id,
    act: (why, after) => ({ act: 'break', lease: row.id, after, why }),
    done: (_, after) => `The lease of ${row.holder} ends in ${spoken(after)}, renewed or not.`,
  }
}

/** Takes a key from one of its holders: the one with this token, or the first. */
export function takeKey(row: KeyRow, token = row.claims[0]?.token): Deed | undefined {
  const holder = row.claims.slice(0, row.held).find((claim) => claim.token === token)
  if (holder === undefined) return undefined
  const term = termOf(row, holder)
  if (term !== undefined) return term
  return {
    title: `Take ${row.key} from ${holder.holder}`,
    button: 'Take it away',
    consequences: [
      `${holder.holder} loses this key at once. Its lease lives on, with all else that it holds.`,
      ...afterwards(row, holder),
      STILL_BELIEVES,
    ],
    ...taking(row.key, holder),
    done: () => `${holder.holder} has lost ${row.key}.`,
  }
}

/** What the taking of one claim from a key needs, whatever it is called. */
function taking(key: string, { token, holder, lease }: ClaimRow) {
  const gone = `${holder} no longer holds it`
  return {
    hasPeriod: false,
    lease,
    gone,
    act: (why: string): Act => ({ act: 'take', key, token, why }),
    void: (mirror: Mirror) => {
      const now = mirror.keys.get(key)
      const holding = now?.claims.slice(0, now.held) ?? []
      if (holding.some((claim) => claim.token === token)) return undefined
      const [first] = holding
      return `${gone}: ${first === undefined ? 'nobody does' : `${first.holder} does`} now.`
    },
  }
}

/** Who has a key when one of its holders has lost it. */
function afterwards(row: KeyRow, lost: ClaimRow): string[] {
  const rest = row.claims.filter((claim) => claim !== lost)
  const stay = row.held - 1
  const [next] = rest.slice(stay)
  const said: string[] = []
  if (stay === 1) said.push(`${rest[0]!.holder} goes on holding it.`)
  if (stay > 1) said.push(`${stay} others go on holding it.`)
  if (next === undefined) said.push(stay === 0 ? 'Nobody waits: the key is free.' : 'Nobody waits.')
  else if (holders(rest) > stay) {
    said.push(
      `${next.holder} is next in line and holds it at once, with the higher token ${next.token}.`,
    )
  } else said.push(`${next.holder} is next in line, and waits on.`)
  return said
}

const ELECTION = /^election\/(.+)\/line$/

/** What ends the term of a leader; `undefined` for a key of any other kind. */
function termOf(row: KeyRow, claim: ClaimRow): Deed | undefined {
  const election = ELECTION.exec(row.key)?.[1]
  if (election === undefined) return undefined
  const { candidate, leads } = candidateOf(claim)
  if (!leads) return undefined
  const next = row.claims[row.held]
  return {
    title: `End the term of ${candidate} in ${election}`,
    button: 'End its term',
    consequences: [
      `${candidate} leads ${election} no longer, at once. Its lease lives on, with all else that it holds.`,
      next === undefined
        ? 'Nobody else campaigns: nobody leads until somebody does.'
        : `${candidateOf(next).candidate} is next in line and leads, with the higher term ${next.token}.`,
      'It is told, but may act as the leader until it has heard: only the term as a fencing token keeps its late writes out.',
    ],
    ...taking(row.key, claim),
    gone: `${candidate} no longer leads`,
    done: () => `The term of ${candidate} in ${election} has ended.`,
  }
}

export function drainInstance(service: string, instance: string, healthyLeft: number): Deed {
  const left =
    healthyLeft === 0
      ? `No healthy instance of ${service} is left: whoever looks for one finds none.`
      : `${several(healthyLeft, 'healthy instance')} of ${service} ${healthyLeft === 1 ? 'is' : 'are'} left.`
  return {
    title: `Drain ${service}/${instance}`,
    button: 'Drain it',
    consequences: [
      'It is shown as critical, and discovery leaves it out at once. What it works on goes on.',
      left,
      'It lasts until it is returned, or registers anew.',
    ],
    hasPeriod: false,
    gone: 'it is not registered any more',
    act: (why) => ({ act: 'drain', service, instance, why }),
    done: () => `${service}/${instance} is drained: discovery leaves it out.`,
  }
}

export function returnInstance(service: string, instance: string): Deed {
  return {
    title: `Return ${service}/${instance} to service`,
    button: 'Return it',
    consequences: ['What its checks and its own reports say counts again, at once.'],
    hasPeriod: false,
    gone: 'it is not drained any more',
    act: (why) => ({ act: 'return', service, instance, why }),
    done: () => `${service}/${instance} is back: its checks and reports count again.`,
  }
}

/** The periods that are offered, in milliseconds. */
export const PERIODS = [5000, 30_000, 60_000, 300_000, 1_800_000].map((ms) => ({
  ms,
  text: spoken(ms),
}))
