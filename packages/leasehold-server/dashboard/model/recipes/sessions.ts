import type { ClaimRow, Mirror } from '../mirror.ts'
import { decode, type SessionRecord } from './recipe-functions.ts'

export interface SessionView {
  readonly table: string
  readonly ref: string
  readonly key: string
  readonly user: string | undefined
  readonly ttl: number
  readonly max: number
  readonly since: number
  readonly lease: string
  readonly token: number
}

/** The tables with sessions. */
export function sessionTables(mirror: Mirror): readonly string[] {
  return mirror.internal.find('session')?.names?.list() ?? []
}

/** The number of sessions in a table. */
export function sessionCount(mirror: Mirror, table: string): number {
  return mirror.internal.find(`session/${table}/id`)?.names?.size ?? 0
}

export function sessionAt(mirror: Mirror, table: string, index: number): SessionView | undefined {
  const ref = mirror.internal.find(`session/${table}/id`)?.names?.list()[index]
  const claim = mirror.keys.get(`session/${table}/id/${ref}`)?.claims.at(-1)
  if (ref === undefined || claim === undefined) return undefined
  const { key, lease, token, claimedAt } = claim
  const record = recordOf(claim)
  const { user, ttl = 0, max = Infinity, since = claimedAt } = record ?? {}
  return { table, ref, key, user, ttl, max, since, lease, token }
}

/** The sessions of a table whose user or name contains the text. */
export function findSessions(mirror: Mirror, table: string, text: string): SessionView[] {
  const wanted = text.trim().toLowerCase()
  const found: SessionView[] = []
  for (let index = 0; index < sessionCount(mirror, table); index++) {
    const session = sessionAt(mirror, table, index)
    if (`${session?.user} ${session?.ref}`.toLowerCase().includes(wanted)) found.push(session!)
  }
  return found
}

function recordOf(claim: ClaimRow): SessionRecord | undefined {
  try {
    return decode(claim as never)
  } catch {
    return undefined
  }
}
