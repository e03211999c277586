import { Command } from 'commander'
import type { KeyEntry, LeaseStore } from 'leasehold/port'
import { type ConnectionFlags, withConnectionOptions, withStore } from '../connection.ts'
import { EXIT_HELP } from '../exit-codes.ts'
import { integerOf } from '../number-options.ts'
import { print, since, table, until } from '../output.ts'

const PAGE = 1000

interface LsFlags extends ConnectionFlags {
  readonly limit?: string
}

export function lsCommand(): Command {
  return withConnectionOptions(new Command('ls'))
    .description('List the held keys and their holders.')
    .argument('[prefix]', 'only keys with this prefix', '')
    .option('--limit <number>', 'the most keys to list')
    .option('--json', 'print JSON')
    .addHelpText('after', EXIT_HELP)
    .action((prefix: string, flags: LsFlags) => {
      const most = flags.limit === undefined ? Infinity : integerOf('--limit', flags.limit, 1)
      return withStore(flags, async ({ store }) => {
        const keys = await readKeys(store, prefix, most)
        print(flags.json, keys, () => keysTable(keys))
      })
    })
}

/** Reads up to `most` keys under a prefix, page by page. */
export async function readKeys(
  store: LeaseStore,
  prefix: string,
  most: number,
): Promise<KeyEntry[]> {
  const keys: KeyEntry[] = []
  let after: string | undefined
  for (let more = true; more && keys.length < most; ) {
    const page = await store.read({ prefix, after, limit: Math.min(PAGE, most - keys.length) })
    keys.push(...page.keys)
    more = page.more
    after = page.keys.at(-1)?.key
  }
  return keys
}

export function keysTable(keys: readonly KeyEntry[]): string {
  const headings = ['KEY', 'HOLDER', 'MODE', 'TOKEN', 'HELD', 'LEFT', 'HOLDERS', 'WAITING']
  return table(
    headings,
    keys.map(({ key, claims, holders, count }) => {
      const [first] = claims
      const { holder, mode, token, heldSince } = first ?? {}
      const waiting = count - holders
      return [key, holder, mode, token, since(heldSince), until(first?.until), holders, waiting]
    }),
  )
}
