import { Command } from 'commander'
import { type ConnectionFlags, withConnectionOptions, withLeasehold } from '../connection.ts'
import { EXIT, EXIT_HELP, Exit } from '../exit-codes.ts'
import { print, since, table } from '../output.ts'

export function servicesCommand(): Command {
  return withConnectionOptions(new Command('services'))
    .description('List the registered services, or the instances of one service.')
    .argument('[name]', 'the service')
    .option('--json', 'print JSON')
    .addHelpText('after', EXIT_HELP)
    .action((name: string | undefined, flags: ConnectionFlags) =>
      withLeasehold(flags, undefined, async ({ registry }) => {
        if (name === undefined) {
          const names = await registry.services()
          const services = await Promise.all(
            names.map(async (service) => {
              const all = await registry.find(service, { status: 'any' })
              const passing = all.filter(({ status }) => status === 'passing').length
              return { service, instances: all.length, passing }
            }),
          )
          print(flags.json, services, () =>
            table(
              ['SERVICE', 'INSTANCES', 'PASSING'],
              services.map(({ service, instances, passing }) => [service, instances, passing]),
            ),
          )
          return
        }
        const instances = await registry.find(name, { status: 'any' })
        if (instances.length === 0) {
          throw new Exit(EXIT.notThere, `no instance of "${name}" is registered`)
        }
        print(flags.json, instances, () =>
          table(
            ['ID', 'STATUS', 'ADDRESS', 'ZONE', 'WEIGHT', 'LOAD', 'SINCE', 'CAPABILITIES', 'NOTE'],
            instances.map((instance) => [
              ...[instance.id, instance.status, instance.address, instance.zone, instance.weight],
              ...[instance.load, since(instance.since), instance.capabilities.join(' ')],
              instance.note,
            ]),
          ),
        )
      }),
    )
}
