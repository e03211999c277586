import { type Checker, type CheckerOptions, Leasehold, SERVICES } from 'leasehold'
import type { Clock, LeaseStore, Random, Watch } from 'leasehold/port'
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
  let checker: Checker | undefined
  const begin = () => {
    if (checker !== undefined) return
    checker = leasehold.registry.checker(checks)
    checker.on('active', () => log.info('this server runs the health checks now'))
  }
  // A server where nobody registers has no duties, and holds nothing.
  const watch = await onFirst(store, SERVICES, begin)
  return {
    get checking() {
      return checker?.active ?? false
    },
    close: async () => {
      watch.close()
      await checker?.close()
      await leasehold.close()
    },
  }
}

/** Calls `begin` when there is something under the prefix; or when it is not known that there is not. */
async function onFirst(store: LeaseStore, prefix: string, begin: () => void): Promise<Watch> {
  const { keys, revision } = await store.read({ prefix, limit: 1 })
  if (keys.length > 0) begin()
  const watch = store.watch({ prefix, from: revision }, ({ type }) => {
    if (type === 'watching') return
    begin()
    watch.close()
  })
  return watch
}
