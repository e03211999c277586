import { Command } from 'commander'
import type { Leasehold, PoolStatus } from 'leasehold'
import { isLeaseholdError, type LeaseStore } from 'leasehold/port'
import { type ConnectionFlags, withConnectionOptions, withLeasehold } from '../connection.ts'
import { EXIT, EXIT_HELP, Exit } from '../exit-codes.ts'
import { print, since, span, table, until } from '../output.ts'
import { readKeys } from './ls.ts'

export function poolCommand(): Command {
  return withConnectionOptions(new Command('pool'))
    .description('List the pools, or show the resources, the queue and the tenants of one pool.')
    .argument('[name]', 'the pool')
    .option('--json', 'print JSON')
    .addHelpText('after', EXIT_HELP)
    .action((name: string | undefined, flags: ConnectionFlags) =>
      withLeasehold(flags, undefined, async (leasehold, { store }) => {
        if (name === undefined) {
          const names = await poolNames(store)
          const pools = await Promise.all(names.map((each) => overviewOf(leasehold, each)))
          print(flags.json, pools, () =>
            table(
              ['POOL', 'RESOURCES', 'FREE', 'WAITING'],
              pools.map((each) => [each.name, each.resources, each.free, each.waiting]),
            ),
          )
          return
        }
        const status = await leasehold.pool(name).status().catch(whenUndefined(name))
        print(flags.json, status, () => poolTables(status))
      }),
    )
}

/** A pool is there once its resources are defined. */
async function poolNames(store: LeaseStore): Promise<string[]> {
  const keys = await readKeys(store, 'pool/', Infinity)
  return keys.flatMap(({ key }) => /^pool\/([^/]+)\/definition$/.exec(key)?.[1] ?? [])
}

async function overviewOf(leasehold: Leasehold, name: string) {
  const { resources, queue } = await leasehold.pool(name).status()
  const free = resources.filter((each) => each.free === each.shares).length
  return { name, resources: resources.length, free, waiting: queue.length }
}

function whenUndefined(name: string): (error: unknown) => never {
  return (error) => {
    if (!isLeaseholdError(error, 'invalid-argument')) throw error
    throw new Exit(EXIT.notThere, `the pool "${name}" is not defined`)
  }
}

function poolTables({ resources, queue, tenants }: PoolStatus): string {
  const held = resources.flatMap(({ name, shares, free, permits }) =>
    permits.length === 0
      ? [[name, `${free}/${shares}`, '-', '-', '-', '-', '-']]
      : permits.map((permit) => [
          ...[name, `${free}/${shares}`, permit.tenant, permit.holder, permit.token],
          ...[since(permit.since), until(permit.until)],
        ]),
  )
  const waiting = queue.map(({ tenant, holder, priority, count, since: from, forecast }) => [
    ...[tenant, holder, priority, count, since(from)],
    forecast === undefined ? '-' : span(forecast.wait),
  ])
  const shares = tenants.map(({ tenant, holds, guaranteed, waiting: waits, used }) => [
    ...[tenant, holds, guaranteed, waits, `${Math.round(used * 100)}%`],
  ])
  return [
    table(['RESOURCE', 'FREE', 'TENANT', 'HOLDER', 'TOKEN', 'HELD', 'LEFT'], held),
    table(['TENANT', 'WAITS', 'PRIORITY', 'COUNT', 'SINCE', 'EXPECTED'], waiting),
    table(['TENANT', 'HOLDS', 'GUARANTEED', 'WAITING', 'USED'], shares),
  ].join('\n\n')
}
