import { type Claim, type Key, LeaseholdError, type Time } from '../../port/index.ts'
import { encodedPart } from '../arguments.ts'

/** The stored fields of a session: the value of its claim. */
export interface SessionRecord {
  readonly user: string | undefined
  /** In milliseconds; both may be `Infinity`. */
  readonly ttl: number
  readonly max: number
  /** When the session began, if its lease was replaced since. */
  readonly since: Time | undefined
  /** Any JSON. It is parsed only on demand. */
  readonly data: string
}

/**
 * The keys of sessions. `session/<name>/id/<ref>` carries the record, so one read finds it.
 * `session/<name>/user/<user>/<ref>` has no value; it lists the sessions of a user. The `ref` is
 * the hash of the session's id, so nobody who lists keys learns an id.
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

  /** The keys that a session's lease claims; the first one carries the record. */
  all(ref: string, user: string | undefined): readonly Key[] {
    return user === undefined ? [this.ofId(ref)] : [this.ofId(ref), this.ofUser(user) + ref]
  }

  refOf(key: Key): string {
    return key.slice(key.lastIndexOf('/') + 1)
  }

  /** The user of a key that lists a session; `undefined` for other keys. */
  userOf(key: Key): string | undefined {
    if (!key.startsWith(this.users)) return undefined
    return decodeURIComponent(key.slice(this.users.length, key.lastIndexOf('/')))
  }
}

export function encode(record: SessionRecord): string {
  const { user, ttl, max, since, data } = record
  return `${JSON.stringify({ user, ttl, max, since })}\n${data}`
}

export function decode(claim: Claim): SessionRecord {
  const value = claim.value ?? ''
  const at = value.indexOf('\n')
  try {
    const { user, ttl, max, since } = JSON.parse(value.slice(0, at))
    // JSON has no Infinity: it is written as null. Old records leave `max` out.
    return { user, ttl: ttl ?? Infinity, max: max ?? Infinity, since, data: value.slice(at + 1) }
  } catch (error) {
    throw new LeaseholdError(
      'storage-damaged',
      `${claim.key} does not contain a session. Something else writes under 'session/'`,
      { cause: error },
    )
  }
}

/** Whether a value belongs to a session that began earlier, under another lease. */
export function isContinued(value: string | undefined): boolean {
  // JSON escapes quotation marks inside strings, so this matches the field's name.
  return value?.slice(0, value.indexOf('\n')).includes('"since":') ?? false
}
