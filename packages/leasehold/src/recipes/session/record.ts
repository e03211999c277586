import { type Claim, type Key, LeaseholdError, type Time } from '../../port/index.ts'
import { encodedPart } from '../arguments.ts'

/** What is stored of a session, as the value of its claim. */
export interface SessionRecord {
  readonly user: string | undefined
  /** In milliseconds; both may be `Infinity`. */
  readonly ttl: number
  readonly max: number
  /** When it began, where that was not when its claim was made: its lease was replaced. */
  readonly since: Time | undefined
  /** Any JSON, as text: it is taken apart only for those who ask. */
  readonly data: string
}

/**
 * Where sessions are kept: `session/<name>/id/<ref>` has the record, so that one reading finds it;
 * `session/<name>/user/<user>/<ref>` has no value, and lets the sessions of a user be listed. The
 * `ref` is the hash of the session's id: whoever may list keys cannot use what they find as an id.
 */
export class SessionKeys {
  readonly prefix: string
  readonly ids: string
  readonly users: string

  constructor(name: string) {
    this.prefix = `session/${name}/`
    this.ids = `${this.prefix}id/`
    this.users = `${this.prefix}user/`
  }

  ofId(ref: string): Key {
    return this.ids + ref
  }

  ofUser(user: string): string {
    return `${this.users}${encodedPart('user', user)}/`
  }

  /** The keys that a session's lease claims, the one with the record first. */
  all(ref: string, user: string | undefined): readonly Key[] {
    return user === undefined ? [this.ofId(ref)] : [this.ofId(ref), this.ofUser(user) + ref]
  }

  refOf(key: Key): string {
    return key.slice(key.lastIndexOf('/') + 1)
  }

  /** Whose session the key lists; `undefined` for a key that lists nobody's. */
  userOf(key: Key): string | undefined {
    if (!key.startsWith(this.users)) return undefined
    return decodeURIComponent(key.slice(this.users.length, key.lastIndexOf('/')))
  }
}

export function encode(record: SessionRecord): string {
  const { user, ttl, max, since, data } = record
  return `${JSON.stringify({ user, ttl, max, since })}\n${data}`
}

/** The record that a claim carries. */
export function decode(claim: Claim): SessionRecord {
  const value = claim.value ?? ''
  const at = value.indexOf('\n')
  try {
    const { user, ttl, max, since } = JSON.parse(value.slice(0, at))
    // JSON has no infinity: it is written as null, and was left out for `max` once.
    return { user, ttl: ttl ?? Infinity, max: max ?? Infinity, since, data: value.slice(at + 1) }
  } catch (error) {
    throw new LeaseholdError(
      'storage-damaged',
      `${claim.key} does not hold a session: something else writes below 'session/'`,
      { cause: error },
    )
  }
}

/** Whether a value is of a session that began earlier, under another lease. */
export function isContinued(value: string | undefined): boolean {
  // A quotation mark within a text is written with a backslash, so this is the name of the field.
  return value?.slice(0, value.indexOf('\n')).includes('"since":') ?? false
}
