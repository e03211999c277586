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
import { Child } from './children.ts'
import { RUN_EXIT } from './exit-codes.ts'

const TTL: Duration = '30s'
const KILL_AFTER_MAX_MS = 5000
/** After a revocation somebody else may hold already. */
const REVOKED_KILL_MS = 1000

/**
 * The ttl that was asked for, parted in two: when the first part has passed without a renewal the
 * command is told to end (TERM), and when the second has passed too it is killed (KILL), which is
 * still before anybody else can hold. To the store the second part is a grace.
 */
export interface Patience {
  readonly ttl: number
  readonly grace: number
}

export function patienceOf(
  ttl: string | undefined,
  killAfter: string | undefined,
  otherwise = TTL,
): Patience {
  const whole = milliseconds((ttl as Duration | undefined) ?? otherwise, '--ttl')
  const grace =
    killAfter === undefined
      ? Math.min(KILL_AFTER_MAX_MS, whole / 3)
      : milliseconds(killAfter as Duration, '--kill-after')
  if (grace >= whole || whole === Infinity) {
    throw new LeaseholdError(
      'invalid-argument',
      `ttl ${formatDuration(whole)} must be finite, and longer than kill-after ${formatDuration(grace)}: the command is told to end that long before the lease can pass to another`,
    )
  }
  return { ttl: whole - grace, grace }
}

/**
 * Refuses a ttl that this store cannot keep. To the store the ttl is what `--kill-after` leaves of
 * it: whoever gave it has never seen that number, and is told what the whole can be.
 */
export function checkPatience(
  { ttl, grace }: Patience,
  killAfter: string | undefined,
  { ttl: { min, max } }: Guarantees,
): void {
  if (ttl >= min && ttl <= max) return
  const given = `--ttl is ${formatDuration(ttl + grace)}, of which --kill-after takes ${formatDuration(grace)}`
  if (ttl > max) {
    const longest = formatDuration(max)
    throw invalid(
      `${given}: the longest that this store can keep is ${longest}, so give --ttl ${longest} or less`,
    )
  }
  const part = killAfter === undefined ? Math.min(KILL_AFTER_MAX_MS, min / 2) : grace
  throw invalid(
    `${given}: the shortest that this store can keep is ${formatDuration(min)} without that, so give --ttl ${formatDuration(min + part)} or more`,
  )
}

/** Something held, as far as it concerns a command that runs under it. */
export interface Held {
  /** Aborted when it is lost. */
  readonly signal: AbortSignal
  /** Aborted when the command should come to its end while there is time. */
  readonly asked?: AbortSignal | undefined
  readonly lease: LeaseId | undefined
  readonly token: Token
}

export interface Ended {
  readonly code: number
  /** Why it was stopped, where it was. */
  readonly lost: string | undefined
}

/** Runs a command while something is held, and stops it before anybody else can hold that. */
export async function holdWhileRunning(
  leasehold: Leasehold,
  held: Held,
  { grace }: Patience,
  command: { readonly line: readonly string[]; readonly name: string },
): Promise<Ended> {
  const child = new Child(command.line, {
    LEASEHOLD_TOKEN: String(held.token),
    LEASEHOLD_KEY: command.name,
  })
  let lost: string | undefined
  const timers: Timer[] = []
  const terminate = (why: string) => {
    // Once: a command that is cleaning up must not take it for a second wish.
    if (lost !== undefined) return
    lost = why
    child.signal('SIGTERM')
  }
  const kill = () => child.signal('SIGKILL')
  const inTime = (ms: number, run: () => void) =>
    timers.push(systemClock.timer(systemClock.now() + Math.max(0, ms), run, true))
  const onLost = () => {
    const { reason } = held.signal
    terminate(reason instanceof Error ? reason.message : String(reason))
    const isForced = isLeaseholdError(reason) && reason.reason === 'revoked'
    if (isForced) inTime(Math.min(grace, REVOKED_KILL_MS), kill)
    else kill()
  }
  const onAsked = () => {
    terminate('it was asked to step down')
    inTime(grace, kill)
  }
  const stopLapses = leasehold.on('lapsed', ({ lease }) => {
    if (held.lease !== undefined && lease !== held.lease) return
    terminate(`the lease could not be renewed, and ends within ${formatDuration(grace)}`)
  })
  const stopBreaks = leasehold.on('broken', ({ lease, remaining, by, why }) => {
    if (lease !== held.lease) return
    const told = `the lease was broken${by ? ` by ${by}` : ''}${why ? `: ${why}` : ''}`
    inTime(remaining - grace, () => terminate(told))
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
