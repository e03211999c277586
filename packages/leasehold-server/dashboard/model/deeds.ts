import type { Act } from '../../src/dashboard/acts.ts'
import { several, spoken } from './format.ts'
import type { KeyRow, LeaseRow, Mirror } from './mirror.ts'

/** Something that can be done to what others hold: what it is, what comes of it, and how it is done. */
export interface Deed {
  readonly title: string
  readonly button: string
  /** What will happen, one sentence each. */
  readonly consequences: readonly string[]
  /** A time can be given until it takes effect. */
  readonly hasPeriod: boolean
  act(why: string, after: number): Act
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

export function revokeLease(mirror: Mirror, row: LeaseRow): Deed {
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
    act: (why) => ({ act: 'revoke', lease: row.id, why }),
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
      ...lossOf(row),
      ...(next === undefined ? [] : [next.replace(' at once', ' then')]),
    ],
    hasPeriod: true,
    act: (why, after) => ({ act: 'break', lease: row.id, after, why }),
  }
}

export function takeKey(row: KeyRow): Deed | undefined {
  const [holder] = row.claims
  if (holder === undefined) return undefined
  const next = row.claims[row.held]
  return {
    title: `Take ${row.key} from ${holder.holder}`,
    button: 'Take it away',
    consequences: [
      `${holder.holder} loses this key at once. Its lease lives on, with all else that it holds.`,
      next === undefined
        ? 'Nobody waits: the key is free.'
        : `${next.holder} is next in line and holds it at once, with the higher token ${next.token}.`,
      STILL_BELIEVES,
    ],
    hasPeriod: false,
    act: (why) => ({ act: 'take', key: row.key, token: holder.token, why }),
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
    act: (why) => ({ act: 'drain', service, instance, why }),
  }
}

export function returnInstance(service: string, instance: string): Deed {
  return {
    title: `Return ${service}/${instance} to service`,
    button: 'Return it',
    consequences: ['What its checks and its own reports say counts again, at once.'],
    hasPeriod: false,
    act: (why) => ({ act: 'return', service, instance, why }),
  }
}

/** The periods that are offered, in milliseconds. */
export const PERIODS = [5000, 30_000, 60_000, 300_000, 1_800_000].map((ms) => ({
  ms,
  text: spoken(ms),
}))
