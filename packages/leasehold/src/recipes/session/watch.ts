import type { Client } from '../../client/index.ts'
import type { Event, Time } from '../../port/index.ts'
import { isContinued, type SessionKeys } from './record.ts'
import { REPLACED } from './session-table.ts'

export type SessionEvent =
  | {
      readonly type: 'created'
      readonly ref: string
      readonly user: string | undefined
      readonly at: Time
    }
  | {
      readonly type: 'ended'
      readonly ref: string
      readonly user: string | undefined
      readonly at: Time
      /** `expired`: not used, or at its maximum. `ended`: somebody ended it. */
      readonly reason: 'expired' | 'ended'
      readonly by: string | undefined
      readonly why: string | undefined
    }
  /** After a long outage: sessions may have begun and ended unseen. */
  | { readonly type: 'missed' }

export type SessionListener = (event: SessionEvent) => void

export interface SessionWatch extends Disposable {
  /** Resolves when it listens. Everything after that is reported. */
  readonly ready: Promise<void>
  close(): void
}

export function watchSessions(
  client: Client,
  keys: SessionKeys,
  listener: SessionListener,
): SessionWatch {
  const watch = client.watchPrefix(keys.prefix, {
    events: (events) => {
      for (const event of sessionEvents(keys, events)) listener(event)
    },
    missed: () => listener({ type: 'missed' }),
  })
  const close = () => watch.close()
  return {
    get ready() {
      return client.awaited(watch.ready)
    },
    close,
    [Symbol.dispose]: close,
  }
}

/** Translates store events to session events. */
function sessionEvents(keys: SessionKeys, events: readonly Event[]): SessionEvent[] {
  // All claims of a session are made and removed in one revision, in which the user's key names the
  // user.
  const users = new Map<string, string>()
  for (const { key, revision } of events) {
    const user = keys.userOf(key)
    if (user !== undefined) users.set(`${revision} ${keys.refOf(key)}`, user)
  }
  return events.flatMap((event) => {
    if (!event.key.startsWith(keys.ids)) return []
    const ref = keys.refOf(event.key)
    const user = users.get(`${event.revision} ${ref}`)
    return meaningOf(event, ref, user)
  })
}

function meaningOf(event: Event, ref: string, user: string | undefined): SessionEvent[] {
  const { type, at } = event
  if (type === 'claimed') {
    return isContinued(event.value) ? [] : [{ type: 'created', ref, user, at }]
  }
  if (type !== 'removed') return []
  const { reason, by, why } = event.end!
  if (why === REPLACED) return []
  return [
    { type: 'ended', ref, user, at, reason: reason === 'expired' ? reason : 'ended', by, why },
  ]
}
