import type { Leasehold } from 'leasehold'
import {
  type Duration,
  formatDuration,
  type Guarantees,
  invalid,
  isLeaseholdError,
  LeaseholdError,
  type LeaseId,
  milliseconds,
  systemClock,
  type Timer,
  type Token,
} from 'leasehold/port'
import { RUN_EXIT } from '../exit-codes.ts'
import { Child } from './child-process.ts'

const TTL: Duration = '30s'
const KILL_AFTER_MAX_MS = 5000
/** Short, because after a revocation another client may already hold the key. */
const REVOKED_KILL_MS = 1000

/**
 * The requested ttl in two parts. After `ttl` without a renewal the command receives TERM; after
 * `grace` more it receives KILL, which is still before another client can hold.
 */
export interface LeaseTimings {
  readonly ttl: number
  readonly grace: number
}

export function timingsOf(ttl: string | undefined, killAfter: string | undefined): LeaseTimings {
  const whole = milliseconds((ttl as Duration | undefined) ?? TTL, '--ttl')
  const grace =
    killAfter === undefined
      ? Math.min(KILL_AFTER_MAX_MS, whole / 3)
      : milliseconds(killAfter as Duration, '--kill-after')
  if (grace >= whole || whole === Infinity) {
    throw new LeaseholdError(
      'invalid-argument',
      `--ttl is ${formatDuration(whole)} and --kill-after is ${formatDuration(grace)}: the ttl must be finite and longer, because TERM is sent that long before the lease can pass to another`,
    )
  }
  return { ttl: whole - grace, grace }
}

/**
 * Refuses a ttl that this store does not support. The store's ttl is `--ttl` minus `--kill-after`;
 * the message names the whole, which is what the user wrote.
 */
export function checkTimings(
  { ttl, grace }: LeaseTimings,
  killAfter: string | undefined,
  { ttl: { min, max } }: Guarantees,
): void {
  if (ttl >= min && ttl <= max) return
  const given = `--ttl is ${formatDuration(ttl + grace)}, with --kill-after ${formatDuration(grace)} included`
  if (ttl > max) {
    const longest = formatDuration(max)
    throw invalid(
      `${given}; the longest ttl of this store is ${longest}. Use --ttl ${longest} or less`,
    )
  }
  const part = killAfter === undefined ? Math.min(KILL_AFTER_MAX_MS, min / 2) : grace
  throw invalid(
    `${given}; the shortest ttl of this store is ${formatDuration(min)} without it. Use --ttl ${formatDuration(min + part)} or more`,
  )
}

/** What a command runs under: a lock or a term. */
export interface Held {
  /** Aborts when the lease is lost. */
  readonly signal: AbortSignal
  /** Aborts when the command is asked to finish early. */
  readonly asked?: AbortSignal | undefined
  readonly lease: LeaseId | undefined
  readonly token: Token
}

export interface Ended {
  readonly code: number
  /** Why the command was stopped, if it was. */
  readonly lost: string | undefined
}

export interface RunCommand {
  readonly line: readonly string[]
  /** What is held, for the command's environment. */
  readonly name: string
  readonly environment?: Readonly<Record<string, string>>
}

/** Runs a command while the lease is held, and stops it before another client can hold it. */
export async function runWhileHeld(
  leasehold: Leasehold,
  held: Held,
  { grace }: LeaseTimings,
  command: RunCommand,
): Promise<Ended> {
  const child = new Child(command.line, {
    ...command.environment,
    LEASEHOLD_TOKEN: String(held.token),
    LEASEHOLD_KEY: command.name,
  })
  let lost: string | undefined
  const timers: Timer[] = []
  const terminate = (why: string) => {
    // Only once: a command that is cleaning up must not receive a second TERM.
    if (lost !== undefined) return
    lost = why
    child.signal('SIGTERM')
  }
  const kill = () => child.signal('SIGKILL')
  const inTime = (ms: number, run: () => void) =>
    timers.push(systemClock.timer(systemClock.now() + Math.max(0, ms), run, true))
  const onLost = () => {
    const { reason } = held.signal
    terminate(messageOf(reason))
    const isForced = isLeaseholdError(reason) && reason.reason === 'revoked'
    if (isForced) inTime(Math.min(grace, REVOKED_KILL_MS), kill)
    else kill()
  }
  const onAsked = () => {
    terminate(messageOf(held.asked!.reason))
    inTime(grace, kill)
  }
  const stopLapses = leasehold.on('lapsed', ({ lease }) => {
    if (held.lease !== undefined && lease !== held.lease) return
    terminate(`the lease could not be renewed and ends within ${formatDuration(grace)}`)
  })
  const stopBreaks = leasehold.on('broken', ({ lease, remaining, by, why }) => {
    if (lease !== held.lease) return
    const message = `the lease was broken${by ? ` by ${by}` : ''}${why ? `: ${why}` : ''}`
    inTime(remaining - grace, () => terminate(message))
  })
  held.signal.addEventListener('abort', onLost, { once: true })
  held.asked?.addEventListener('abort', onAsked, { once: true })
  if (held.signal.aborted) onLost()
  else if (held.asked?.aborted) onAsked()
  try {
    const code = await child.exited
    return { code: lost === undefined ? code : RUN_EXIT.lost, lost }
  } finally {
    held.signal.removeEventListener('abort', onLost)
    held.asked?.removeEventListener('abort', onAsked)
    stopLapses()
    stopBreaks()
    for (const timer of timers) timer.cancel()
  }
}

function messageOf(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason)
}
