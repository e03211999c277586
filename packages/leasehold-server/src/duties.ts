import { type CheckerOptions, Leasehold } from 'leasehold'
import type { Clock, LeaseStore, Random } from 'leasehold/port'
import type { Logger } from 'pino'

export interface DutiesOptions {
  readonly store: LeaseStore
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Where health checks may go, and the rest of how they are made. */
  readonly checks: CheckerOptions
}

export interface Duties {
  /** Whether this server is the one that checks. */
  readonly checking: boolean
  close(): Promise<void>
}

/**
 * What is done for all clients by one of the servers on a store, at any time by one alone: the
 * health checks that registered instances ask for. Which server it is is decided by a lease, as
 * everything here is; when it dies the next goes on.
 */
export async function beginDuties(options: DutiesOptions): Promise<Duties> {
  const { store, clock, random, log, checks } = options
  const holder = `leasehold-server:${process.pid}:${random.id().slice(0, 8)}`
  const leasehold = await Leasehold.open(store, { holder, clock, random, logger: log })
  const checker = leasehold.registry.checker(checks)
  checker.on('active', () => log.info('this server runs the health checks now'))
  return {
    get checking() {
      return checker.active
    },
    close: async () => {
      await checker.close()
      await leasehold.close()
    },
  }
}
