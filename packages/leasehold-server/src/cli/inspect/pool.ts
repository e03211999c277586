import { Command } from 'commander'
import type { PoolStatus } from 'leasehold'
import { type ConnectionFlags, withConnectionOptions, withLeasehold } from '../connection.ts'
import { EXIT_HELP } from '../exit-codes.ts'
import { print, since, span, table, until } from '../output.ts'

export function poolCommand(): Command {
  return withConnectionOptions(new Command('pool'))
    .description('Show the resources of a pool with their holders, the queue, and the tenants.')
    .argument('<name>', 'the pool')
    .option('--json', 'print JSON')
    .addHelpText('after', EXIT_HELP)
    .action((name: string, flags: ConnectionFlags) =>
      withLeasehold(flags, undefined, async (leasehold) => {
        const status = await leasehold.pool(name).status()
        print(flags.json, status, () => poolTables(status))
      }),
    )
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
