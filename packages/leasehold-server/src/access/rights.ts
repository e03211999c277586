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

/** Whether some right covers every key that begins with `prefix`; for one key, give the key. */
export function allows(rights: readonly Right[], verb: Verb, prefix: string): boolean {
  const reserved = prefix.startsWith(OWN_PREFIX) || OWN_PREFIX.startsWith(prefix)
  const wanted = prefix.startsWith(OWN_PREFIX) ? 'admin' : verb
  for (const right of rights) {
    if (!right.verbs.includes(wanted) || !prefix.startsWith(right.prefix)) continue
    // A prefix that has the server's own keys under it, and others, needs the right to both.
    if (reserved && wanted !== 'admin' && !right.verbs.includes('admin')) continue
    return true
  }
  return false
}

/** Whether some right covers every key that begins with `prefix`, if not the server's own. */
export function allowsOthers(rights: readonly Right[], verb: Verb, prefix: string): boolean {
  if (prefix.startsWith(OWN_PREFIX)) return false
  return rights.some((right) => right.verbs.includes(verb) && prefix.startsWith(right.prefix))
}

/** Whether some right has this verb at all, on whatever keys. */
export function allowsSomewhere(rights: readonly Right[], verb: Verb): boolean {
  return rights.some((right) => right.verbs.includes(verb))
}

/** A right as it is written: `claim,read:jobs/`, `read,watch:` for all keys, `all:jobs/`. */
export function parseRight(text: string): Right {
  const colon = text.indexOf(':')
  const names = (colon < 0 ? text : text.slice(0, colon)).split(',')
  const prefix = colon < 0 ? '' : text.slice(colon + 1)
  const verbs = names.includes('all') ? [...VERBS] : names
  const unknown = verbs.find((verb) => !(VERBS as readonly string[]).includes(verb))
  if (unknown !== undefined || colon < 0) {
    const what = colon < 0 ? 'has no colon' : `has the verb ${show(unknown)}`
    throw new LeaseholdError(
      'invalid-argument',
      `right ${show(text)} ${what}: write verbs (${VERBS.join(', ')}, or all), a colon and a prefix, such as 'claim,read:jobs/'`,
    )
  }
  return { verbs: verbs as Verb[], prefix }
}

export function writeRight({ verbs, prefix }: Right): string {
  return `${verbs.length === VERBS.length ? 'all' : verbs.join(',')}:${prefix}`
}

/** Refuses, saying who, what and where. */
export function demand(
  who: { readonly name: string; readonly rights: readonly Right[] },
  verb: Verb,
  prefix: Key | string,
): void {
  if (allows(who.rights, verb, prefix)) return
  throw forbidden(who.name, verb, prefix)
}

export function forbidden(name: string, verb: Verb, prefix: string): LeaseholdError {
  const what = prefix.startsWith(OWN_PREFIX) ? 'admin' : verb
  return new LeaseholdError(
    'forbidden',
    `${show(name)} has no right to ${what} ${show(prefix)}: ask for a token with '${what}:${prefix}'`,
  )
}
