import { Command } from 'commander'
import { type Duration, formatDuration, type LeaseStore, milliseconds } from 'leasehold/port'
import { drain, returnDrained } from '../../registry/drain.ts'
import { type ConnectionFlags, withConnectionOptions, withStore } from '../connection.ts'
import { EXIT, EXIT_HELP, Exit } from '../exit-codes.ts'
import { plural, print } from '../output.ts'
import { readLeases } from '../read-leases.ts'
import { revokeAll } from './revoke.ts'

interface DrainFlags extends ConnectionFlags {
  readonly why: string
  readonly holder?: string
  readonly after: string
  readonly return?: boolean
}

export function drainCommand(): Command {
  return withConnectionOptions(new Command('drain'))
    .description('Take an instance out of discovery, or a holder out of everything, gracefully.')
    .argument('[service]', 'the service of the instance; or use --holder')
    .argument('[instance]', 'the instance')
    .requiredOption('--why <reason>', 'shown to others and kept in the history')
    .option('--return', 'return a drained instance to discovery')
    .option('--holder <name>', 'break all leases of this holder instead')
    .option('--after <duration>', 'with --holder: when its leases end at the latest', '30s')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
A drained instance keeps its registration and its work: discovery leaves it out until it is returned
or registers again. A drained holder is notified and has until --after to finish; nothing stops it from
claiming again, so stop it then.
${EXIT_HELP}`,
    )
    .action((service: string | undefined, instance: string | undefined, flags: DrainFlags) => {
      const isInstance = service !== undefined && instance !== undefined
      if (isInstance === (flags.holder !== undefined) || (flags.return && !isInstance)) {
        throw new Exit(EXIT.usage, 'use either a service and an instance, or --holder')
      }
      return withStore(flags, ({ store, by }) =>
        isInstance
          ? drainInstance(store, { service, instance, by, why: flags.why }, flags)
          : drainHolder(store, flags.holder!, by, flags),
      )
    })
}

async function drainInstance(
  store: LeaseStore,
  request: Parameters<typeof drain>[1],
  flags: DrainFlags,
): Promise<void> {
  await (flags.return ? returnDrained(store, request) : drain(store, request))
  const { service, instance } = request
  const state = flags.return ? 'returned' : 'drained'
  print(flags.json, { service, instance, state }, () => `${service}/${instance} is ${state}`)
}

async function drainHolder(
  store: LeaseStore,
  holder: string,
  by: string,
  { why, json, ...flags }: DrainFlags,
): Promise<void> {
  const after = milliseconds(flags.after as Duration, '--after')
  const leases = (await readLeases(store, Infinity)).filter((lease) => lease.holder === holder)
  if (leases.length === 0) throw new Exit(EXIT.notThere, `"${holder}" has no lease`)
  for (const { id } of leases) await revokeAll(store, { lease: id }, { by, why, after })
  const ids = leases.map(({ id }) => id)
  const ends = `${ids.length === 1 ? 'ends' : 'end'} in ${formatDuration(after)} at the latest`
  print(
    json,
    { holder, leases: ids, after },
    () => `${plural(ids.length, 'lease')} of "${holder}" ${ends}`,
  )
}
