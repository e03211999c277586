import { type Key, LeaseholdError, show } from 'leasehold/port'

/**
 * What somebody may do with keys:
 *
 * - `claim`: take places on them, and change the values of one's own.
 * - `renew` and `release`: do so for leases and claims of others, without their secret.
 * - `read` and `watch`: see who holds them.
 * - `admin`: end what others hold, by force.
 */
export const VERBS = ['claim', 'renew', 'release', 'read', 'watch', 'admin'] as const

export type Verb = (typeof VERBS)[number]

/** These verbs, on all keys that begin with this. */
export interface Right {
  readonly verbs: readonly Verb[]
  readonly prefix: string
}

/** Keys that begin with this are the server's own: only `admin` reaches them. */
export const OWN_PREFIX = 'leasehold/'

/** Whether some right covers this one key. */
export function allowsKey(rights: readonly Right[], verb: Verb, key: Key): boolean {
  const wanted = key.startsWith(OWN_PREFIX) ? 'admin' : verb
  return rights.some(({ verbs, prefix }) => verbs.includes(wanted) && key.startsWith(prefix))
}

/** Whether some right covers every key that begins with `prefix`, the server's own included. */
export function allows(rights: readonly Right[], verb: Verb, prefix: string): boolean {
  const covers = (wanted: Verb, keys: string) =>
    rights.some((right) => right.verbs.includes(wanted) && keys.startsWith(right.prefix))
  if (prefix.startsWith(OWN_PREFIX)) return covers('admin', prefix)
  if (!covers(verb, prefix)) return false
  return !OWN_PREFIX.startsWith(prefix) || covers('admin', OWN_PREFIX)
}

/** Whether some right covers every key that begins with `prefix`, if not the server's own. */
export function allowsOthers(rights: readonly Right[], verb: Verb, prefix: string): boolean {
  if (prefix.startsWith(OWN_PREFIX)) return false
  return rights.some((right) => right.verbs.includes(verb) && prefix.startsWith(right.prefix))
}

/** Whether there is any key that some right covers. */
export function allowsSomewhere(rights: readonly Right[], verb: Verb): boolean {
  return rights.some(({ verbs, prefix }) => {
    if (!prefix.startsWith(OWN_PREFIX) && verbs.includes(verb)) return true
    const reachesOwn = prefix.startsWith(OWN_PREFIX) || OWN_PREFIX.startsWith(prefix)
    return reachesOwn && verbs.includes('admin')
  })
}

/** A right as it is written: `claim,read:jobs/`, `read,watch:` for all keys, `all:jobs/`. */
export function parseRight(text: string): Right {
  const colon = text.indexOf(':')
  if (colon < 0) throw wrongRight(text, 'has no colon')
  const names = text.slice(0, colon).split(',')
  const verbs = names.includes('all') ? [...VERBS] : names
  const unknown = verbs.find((verb) => !(VERBS as readonly string[]).includes(verb))
  if (unknown !== undefined) throw wrongRight(text, `has the verb ${show(unknown)}`)
  return { verbs: verbs as Verb[], prefix: text.slice(colon + 1) }
}

function wrongRight(text: string, what: string): LeaseholdError {
  return new LeaseholdError(
    'invalid-argument',
    `right ${show(text)} ${what}: write verbs (${VERBS.join(', ')}, or all), a colon and a prefix, such as 'claim,read:jobs/'`,
  )
}

export function writeRight({ verbs, prefix }: Right): string {
  return `${verbs.length === VERBS.length ? 'all' : verbs.join(',')}:${prefix}`
}

export function forbidden(name: string, verb: Verb, prefix: string): LeaseholdError {
  const what = prefix.startsWith(OWN_PREFIX) ? 'admin' : verb
  return new LeaseholdError(
    'forbidden',
    `${show(name)} has no right to ${what} ${show(prefix)}: ask for a token with '${what}:${prefix}'`,
  )
}
