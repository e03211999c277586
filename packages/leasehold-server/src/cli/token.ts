import { Command } from 'commander'
import { type Duration, milliseconds, systemClock } from 'leasehold/port'
import {
  parseRight,
  QUOTA_NAMES,
  type Quota,
  TokenBook,
  type TokenEntry,
  writeRight,
} from '../access/index.ts'
import { type ConnectionFlags, connecting, withStore } from './connection.ts'
import { EXIT, EXIT_HELP, Exit } from './exit-codes.ts'
import { at, print, table } from './table.ts'

interface CreateFlags extends ConnectionFlags {
  readonly right: string[]
  readonly quota: string[]
  readonly expires?: string
  readonly certificate?: string
}

interface RevokeFlags extends ConnectionFlags {
  readonly openToEverybody?: boolean
}

export function tokenCommand(): Command {
  const create = connecting(new Command('create'))
    .description(
      'Makes a token and prints it, this once. From the first one on nobody is let in without.',
    )
    .argument('<name>', 'who gets it: letters, digits and dashes')
    .requiredOption(
      '--right <verbs:prefix...>',
      "what it may do, on keys that begin with what: 'claim,read:jobs/', 'all:' for everything",
    )
    .option('--quota <name=number...>', `what it may use at most: ${QUOTA_NAMES.join(', ')}`, [])
    .option('--expires <duration>', "in how long it ends, such as '90d'; never if not given")
    .option('--certificate <name>', 'the common name of a client certificate that stands for it')
    .option('--json', 'prints JSON')
    .addHelpText('after', EXIT_HELP)
    .action((name: string, flags: CreateFlags) => createToken(name, flags))
  const list = connecting(new Command('list'))
    .description('Lists the tokens; not the secrets in them, which are not kept.')
    .option('--json', 'prints JSON')
    .addHelpText('after', EXIT_HELP)
    .action((flags: ConnectionFlags) =>
      withBook(flags, async (book) => {
        const entries = book.list().map(shown)
        print(flags.json, entries, () => tokensTable(entries))
      }),
    )
  const revoke = connecting(new Command('revoke'))
    .description('Ends a token; whoever uses it is cut off.')
    .argument('<name>', 'who has it')
    .option('--open-to-everybody', 'revokes the last one too: everybody may then do everything')
    .addHelpText('after', EXIT_HELP)
    .action((name: string, flags: RevokeFlags) => revokeToken(name, flags))
  return new Command('token')
    .description('Makes, lists and ends the tokens that a server lets its clients in by.')
    .addCommand(create)
    .addCommand(list)
    .addCommand(revoke)
}

async function withBook(
  flags: ConnectionFlags,
  work: (book: TokenBook, who: string) => Promise<void>,
): Promise<void> {
  await withStore(flags, async ({ store, who }) => {
    const book = await TokenBook.open(store, systemClock)
    try {
      await work(book, who)
    } finally {
      book.close()
    }
  })
}

async function createToken(name: string, flags: CreateFlags): Promise<void> {
  await withBook(flags, async (book) => {
    const { expires, certificate } = flags
    // Nothing is wrong with such a command line: it is refused because of what is there.
    if (book.list().some((entry) => entry.name === name)) {
      throw new Exit(
        EXIT.failed,
        `"${name}" has a token already: revoke it first, or take another name`,
      )
    }
    const token = await book.create({
      name,
      rights: flags.right.map(parseRight),
      quota: quotaOf(flags.quota),
      certificate,
      ...(expires !== undefined && {
        expiresAt: systemClock.now() + milliseconds(expires as Duration, '--expires'),
      }),
    })
    print(flags.json, { name, token }, () => token)
  })
}

async function revokeToken(name: string, flags: RevokeFlags): Promise<void> {
  await withBook(flags, async (book, who) => {
    const others = book.list().filter((entry) => entry.name !== name)
    if (others.length === 0 && !book.isEmpty && !flags.openToEverybody) {
      throw new Exit(
        EXIT.failed,
        `"${name}" is the last token: without any, everybody may do everything. Make another first, or give --open-to-everybody`,
      )
    }
    if (!(await book.revoke(name, who))) throw new Exit(EXIT.notThere, `"${name}" has no token`)
  })
}

function quotaOf(pairs: readonly string[]): Quota {
  return Object.fromEntries(
    pairs.map((pair) => {
      const [name = '', value = ''] = pair.split('=')
      const number = /^[\d.]+$/.test(value) ? Number(value) : Number.NaN
      const isTime = name === 'ttlMin' || name === 'ttlMax'
      return [name, isTime && Number.isNaN(number) ? milliseconds(value as Duration, name) : number]
    }),
  )
}

interface Shown extends Omit<TokenEntry, 'rights'> {
  readonly rights: readonly string[]
}

function shown(entry: TokenEntry): Shown {
  return { ...entry, rights: entry.rights.map(writeRight) }
}

function tokensTable(entries: readonly Shown[]): string {
  return table(
    ['NAME', 'RIGHTS', 'QUOTA', 'CREATED', 'EXPIRES', 'CERTIFICATE'],
    entries.map(({ name, rights, quota = {}, createdAt, expiresAt, certificate }) => [
      ...[name, rights.join(' ')],
      Object.entries(quota)
        .map(([limit, value]) => `${limit}=${value}`)
        .join(' '),
      ...[at(createdAt), expiresAt === undefined ? 'never' : at(expiresAt), certificate],
    ]),
  )
}
