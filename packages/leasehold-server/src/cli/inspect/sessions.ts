import { Command } from 'commander'
import type { Leasehold } from 'leasehold'
import { type ConnectionFlags, withConnectionOptions, withLeasehold } from '../connection.ts'
import { EXIT, EXIT_HELP, Exit } from '../exit-codes.ts'
import { integerOf } from '../number-options.ts'
import { print, since, table, until } from '../output.ts'
import { readKeys } from './ls.ts'

interface SessionsFlags extends ConnectionFlags {
  readonly user?: string
  readonly limit: string
}

export function sessionsCommand(): Command {
  return withConnectionOptions(new Command('sessions'))
    .description('List the tables of login sessions, or the sessions in one table.')
    .argument('[name]', 'the table, such as main')
    .option('--user <name>', 'only sessions of this user')
    .option('--limit <number>', 'the most sessions to list', '1000')
    .option('--json', 'print JSON')
    .addHelpText('after', EXIT_HELP)
    .action((name: string | undefined, flags: SessionsFlags) =>
      withLeasehold(flags, undefined, async (leasehold, { store }) => {
        if (name !== undefined) {
          await showSessions(leasehold, name, flags)
          return
        }
        const counts = new Map<string, number>()
        for (const { key } of await readKeys(store, 'session/', Infinity)) {
          const [, each, kind] = key.split('/')
          if (kind === 'id') counts.set(each!, (counts.get(each!) ?? 0) + 1)
        }
        const tables = [...counts].map(([each, sessions]) => ({ name: each, sessions }))
        print(flags.json, tables, () =>
          table(
            ['TABLE', 'SESSIONS'],
            tables.map((each) => [each.name, each.sessions]),
          ),
        )
      }),
    )
}

/** Data and ids are not shown: whoever has an id has the session. */
async function showSessions(
  leasehold: Leasehold,
  name: string,
  { user, limit, json }: SessionsFlags,
): Promise<void> {
  const most = { limit: integerOf('--limit', limit, 1) }
  const book = leasehold.sessions(name)
  const found = await (user === undefined ? book.listAll(most) : book.list(user, most))
  const sessions = found.map(({ ref, user: its, lease, createdAt, until: end }) => {
    return { ref, user: its, lease, createdAt, until: end }
  })
  if (sessions.length === 0) throw new Exit(EXIT.notThere, `there is no such session in "${name}"`)
  print(json, sessions, () =>
    table(
      ['USER', 'SINCE', 'LEFT', 'LEASE', 'REF'],
      sessions.map((each) => [
        ...[each.user, since(each.createdAt), until(each.until), each.lease, each.ref],
      ]),
    ),
  )
}
