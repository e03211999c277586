import { type Key, LeaseholdError, show } from 'leasehold/port'

/**
 * What a principal may do with keys:
 *
 * - `claim`: claim them, and change the values of its own claims.
 * - `renew` and `release`: do this for leases and claims of others, without their secret.
 * - `read` and `watch`: see their holders.
 * - `admin`: end the claims and leases of others by force.
 */
export const VERBS = ['claim', 'renew', 'release', 'read', 'watch', 'admin'] as const

export type Verb = (typeof VERBS)[number]

/** These verbs, on all keys with this prefix. */
export interface Right {
  readonly verbs: readonly Verb[]
  readonly prefix: string
}

/** Keys with this prefix belong to the server: they need `admin`. */
export const SERVER_PREFIX = 'leasehold/'

/** Whether a right covers this key. */
export function allowsKey(rights: readonly Right[], verb: Verb, key: Key): boolean {
  const wanted = key.startsWith(SERVER_PREFIX) ? 'admin' : verb
  return rights.some(({ verbs, prefix }) => verbs.includes(wanted) && key.startsWith(prefix))
}

/** Whether the rights cover every key with this prefix, including the server's own. */
export function allows(rights: readonly Right[], verb: Verb, prefix: string): boolean {
  const covers = (wanted: Verb, keys: string) =>
    rights.some((right) => right.verbs.includes(wanted) && keys.startsWith(right.prefix))
  if (prefix.startsWith(SERVER_PREFIX)) return covers('admin', prefix)
  if (!covers(verb, prefix)) return false
  return !SERVER_PREFIX.startsWith(prefix) || covers('admin', SERVER_PREFIX)
}

/** Whether a right covers every key with this prefix, except the server's own. */
export function allowsOthers(rights: readonly Right[], verb: Verb, prefix: string): boolean {
  if (prefix.startsWith(SERVER_PREFIX)) return false
  return rights.some((right) => right.verbs.includes(verb) && prefix.startsWith(right.prefix))
}

/** Whether a right covers any key at all. */
export function allowsSomewhere(rights: readonly Right[], verb: Verb): boolean {
  return rights.some(({ verbs, prefix }) => {
    if (!prefix.startsWith(SERVER_PREFIX) && verbs.includes(verb)) return true
    const reachesOwn = prefix.startsWith(SERVER_PREFIX) || SERVER_PREFIX.startsWith(prefix)
    return reachesOwn && verbs.includes('admin')
  })
}

/** Parses a right: `claim,read:jobs/`, `read,watch:` for all keys, `all:jobs/`. */
export function parseRight(given: string): Right {
  const colon = given.indexOf(':')
  if (colon < 0) throw invalidRight(given, 'has no colon')
  const names = given.slice(0, colon).split(',')
  const verbs = names.includes('all') ? [...VERBS] : names
  const unknown = verbs.find((verb) => !(VERBS as readonly string[]).includes(verb))
  if (unknown !== undefined) throw invalidRight(given, `has the unknown verb ${show(unknown)}`)
  return { verbs: verbs as Verb[], prefix: given.slice(colon + 1) }
}

function invalidRight(given: string, what: string): LeaseholdError {
  return new LeaseholdError(
    'invalid-argument',
    `right ${show(given)} ${what}: use verbs (${VERBS.join(', ')}, or all), a colon and a prefix, such as 'claim,read:jobs/'`,
  )
}

export function writeRight({ verbs, prefix }: Right): string {
  return `${verbs.length === VERBS.length ? 'all' : verbs.join(',')}:${prefix}`
}

export function forbidden(name: string, verb: Verb, prefix: string): LeaseholdError {
  const what = prefix.startsWith(SERVER_PREFIX) ? 'admin' : verb
  return new LeaseholdError(
    'forbidden',
    `${show(name)} has no right to ${what} ${show(prefix)}: use an access token with '${what}:${prefix}'`,
  )
}
