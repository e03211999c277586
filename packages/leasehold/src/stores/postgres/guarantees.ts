import type { Guarantees } from '../../port/index.ts'
import type { Settings } from './options.ts'

/** If the process that handles the deadlines dies, it is replaced after one to two times this long. */
export const TAKE_OVER_MS = 500

/** How late an expiry is under normal conditions: a timer, a statement, a commit, a notification. */
const LATENESS_MS = 50

export function guaranteesOf(settings: Settings, warnings: readonly string[]): Guarantees {
  const { limits, listener, poll } = settings
  return {
    engine: 'postgres',
    inProcess: false,
    durability: 'engine',
    tokensSurvive: 'failover',
    ttl: { min: limits.ttlMin, max: limits.ttlMax, step: 0 },
    expiryLateness: listener === undefined ? LATENESS_MS + poll : LATENESS_MS,
    childLeases: true,
    requestsRemembered: limits.requests,
    eventsKept: limits.events,
    notes: [
      ...warnings,
      'Every change is committed with synchronous_commit on, and answered after it: it survives a crash of PostgreSQL and of its machine.',
      'A failover to a standby that is not synchronous (synchronous_standby_names) loses what had not reached it: two may then hold one key. Their tokens differ: a promoted server goes on with tokens far above all that were given.',
      'A restored backup on the same server and timeline, or a dump loaded elsewhere, brings old tokens back: see the docs for how to raise them.',
      "Time is that of the server's clock. If it is set back, nothing ends early; if it is set forward, leases end early by as much. Let it be slewed.",
      `If the process that handles the deadlines dies, an expiry may be up to ${2 * TAKE_OVER_MS} ms later; a claim on the key still carries it out at once.`,
      listener === undefined
        ? `Nothing is pushed: a hand-over is noticed up to ${poll} ms later.`
        : `Changes are pushed by NOTIFY. If a push is lost, the change is found after at most ${poll} ms.`,
      'Changes pass one after the other: one schema makes as many commits a second as the disk flushes, and each carries many calls. Use several schemas for parts that have nothing to do with each other.',
    ],
  }
}
