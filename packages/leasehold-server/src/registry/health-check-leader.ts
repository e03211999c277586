import { type Checker, type CheckerOptions, Leasehold, SERVICES } from 'leasehold'
import type { Clock, LeaseStore, Random, Watch } from 'leasehold/port'
import type { Logger } from 'pino'

export interface HealthCheckLeaderOptions {
  readonly store: LeaseStore
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Which addresses health checks may reach, and how the checks run. */
  readonly checks: CheckerOptions
}

export interface HealthCheckLeader {
  /** Whether this server runs the health checks now. */
  readonly checking: boolean
  close(): Promise<void>
}

/**
 * Runs the health checks that registered instances ask for, on one server at a time. The servers
 * on a store elect that server with a lease; when it dies, another takes over.
 */
export async function startHealthCheckLeader(
  options: HealthCheckLeaderOptions,
): Promise<HealthCheckLeader> {
  const { store, clock, random, log, checks } = options
  const holder = `leasehold-server:${process.pid}:${random.id().slice(0, 8)}`
  const leasehold = await Leasehold.open(store, { holder, clock, random, logger: log })
  let checker: Checker | undefined
  const begin = () => {
    if (checker !== undefined) return
    checker = leasehold.registry.checker(checks)
    checker.on('active', () => log.info('this server runs the health checks now'))
  }
  // Without registered instances there is nothing to check, so the server joins no election.
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

/** Calls `begin` once a key exists under the prefix, or if the watch cannot rule that out. */
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
