import type { Claim, Time } from 'leasehold/port'
import { type HoldNote, noteOf } from './hold-note.ts'

/** The service that agents register as, so that discovery and the dashboard show them. */
export const AGENTS_SERVICE = 'agents'

/** The name of an agent as the id of its registration. */
export function agentId(agent: string): string {
  return agent.replaceAll(/[\s/]/g, '-')
}

/** The name of an agent as a tenant of pools. */
export function agentTenant(agent: string): string {
  return agent.replaceAll(/[^\w.:@-]/g, '_').slice(0, 100)
}

/** What these functions read of a claim. */
export type QueuedClaim = Pick<
  Claim,
  'key' | 'token' | 'lease' | 'holder' | 'mode' | 'claimedAt'
> & {
  readonly value?: string | undefined
  readonly heldSince?: Time | undefined
}

/** All claims of one hold of an agent. */
export interface NotedHold<Kind extends QueuedClaim = Claim> {
  readonly note: HoldNote
  readonly claims: readonly Kind[]
  /** Whether it holds. It waits until it holds all of its keys: the folders above a file, too. */
  readonly isHeld: boolean
  /** Since when it holds, or waits. */
  readonly since: Time
  /** The claim that says most about it: one that waits, or one that excludes others. */
  readonly main: Kind
}

/** The holds that these claims belong to, in the order of their first claims. */
export function notedHolds<Kind extends QueuedClaim>(claims: Iterable<Kind>): NotedHold<Kind>[] {
  const found = new Map<string, { note: HoldNote; claims: Kind[] }>()
  for (const claim of claims) {
    const note = noteOf(claim)
    if (note === undefined) continue
    const known = found.get(note.ref)
    if (known === undefined) found.set(note.ref, { note, claims: [claim] })
    else known.claims.push(claim)
  }
  return [...found.values()].map(({ note, claims: own }) => {
    const waiting = own.filter(({ heldSince }) => heldSince === undefined)
    const isHeld = waiting.length === 0
    const among = isHeld ? own : waiting
    const since = isHeld
      ? Math.max(...own.map(({ heldSince }) => heldSince!))
      : Math.min(...own.map(({ claimedAt }) => claimedAt))
    const main = among.find(({ mode }) => mode === 'exclusive') ?? among.at(-1)!
    return { note, claims: own, isHeld, since, main }
  })
}

/**
 * The claims that a hold waits for in the queue of a key, or would wait for if it is not in it.
 * Shared claims do not exclude each other.
 */
export function claimsAhead<Kind extends QueuedClaim>(
  queue: readonly Kind[],
  ref: string,
  mode: Claim['mode'],
): Kind[] {
  const at = queue.findIndex((it) => noteOf(it)?.ref === ref)
  const before = at < 0 ? queue : queue.slice(0, at)
  return before.filter((it) => it.mode === 'exclusive' || mode === 'exclusive')
}
