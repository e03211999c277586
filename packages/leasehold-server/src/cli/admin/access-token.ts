import { Command } from 'commander'
import { type Duration, milliseconds, systemClock } from 'leasehold/port'
import {
  type AccessTokenEntry,
  AccessTokens,
  CREATE_ADMINISTRATOR,
  parseRight,
  QUOTA_NAMES,
  type Quota,
  type TokenChange,
  writeRight,
} from '../../access/index.ts'
import {
  type Connection,
  type ConnectionFlags,
  withConnectionOptions,
  withStore,
} from '../connection.ts'
import { EXIT, EXIT_HELP, Exit } from '../exit-codes.ts'
import { at, print, table } from '../output.ts'

interface CreateFlags extends ConnectionFlags {
  readonly right: string[]
  readonly quota: string[]
  readonly expires?: string
  readonly certificate?: string
}

interface RevokeFlags extends ConnectionFlags {
  readonly openToEverybody?: boolean
}

export function accessTokenCommand(): Command {
  const create = withConnectionOptions(new Command('create'))
    .description(
      'Create an access token and print it once. Once a token exists, every client needs one.',
    )
    .argument('<name>', 'the name of its owner: letters, digits and dashes')
    .requiredOption(
      '--right <verbs:prefix...>',
      "its rights on keys with a prefix: 'claim,read:jobs/'; 'all:' for everything",
    )
    .option('--quota <name=number...>', `its limits: ${QUOTA_NAMES.join(', ')}`, [])
    .option('--expires <duration>', "how long it is valid, such as '90d' (default: forever)")
    .option('--certificate <name>', 'the common name of a client certificate that replaces it')
    .option('--json', 'print JSON')
    .addHelpText('after', EXIT_HELP)
    .action((name: string, flags: CreateFlags) => createToken(name, flags))
  const list = withConnectionOptions(new Command('list'))
    .description('List the access tokens, without their secrets, which are not stored.')
    .option('--json', 'print JSON')
    .addHelpText('after', EXIT_HELP)
    .action((flags: ConnectionFlags) =>
      withAccessTokens(flags, async (book) => {
        const entries = book.list().map(shown)
        print(flags.json, entries, () => tokensTable(entries))
      }),
    )
  const revoke = withConnectionOptions(new Command('revoke'))
    .description('Revoke an access token and disconnect its clients.')
    .argument('<name>', 'the name of its owner')
    .option('--open-to-everybody', 'revoke even the last one: everybody may then do everything')
    .addHelpText('after', EXIT_HELP)
    .action((name: string, flags: RevokeFlags) => revokeToken(name, flags))
  return new Command('access-token')
    .alias('token')
    .description("Create, list and revoke access tokens ('token' is the deprecated name).")
    .addCommand(create)
    .addCommand(list)
    .addCommand(revoke)
}

async function withAccessTokens(
  flags: ConnectionFlags,
  work: (book: AccessTokens, by: string) => Promise<void>,
  creates = false,
): Promise<void> {
  const withBook = async ({ store, by }: Connection) => {
    const book = await AccessTokens.open(store, systemClock)
    try {
      await work(book, by)
    } finally {
      book.close()
    }
  }
  await withStore(flags, withBook, creates)
}

async function createToken(name: string, flags: CreateFlags): Promise<void> {
  const create = async (book: AccessTokens) => {
    const { expires, certificate } = flags
    // Not a usage error: the command line is correct, but the name is taken.
    if (book.list().some((entry) => entry.name === name)) {
      throw new Exit(
        EXIT.failed,
        `"${name}" already has an access token: revoke it first, or use another name`,
      )
    }
    const spec = {
      name,
      rights: flags.right.map(parseRight),
      quota: quotaOf(flags.quota),
      certificate,
      ...(expires !== undefined && {
        expiresAt: systemClock.now() + milliseconds(expires as Duration, '--expires'),
      }),
    }
    await refuseLockOut(book, { adds: spec }, flags)
    const isFirst = book.isEmpty
    const token = await book.create(spec)
    print(flags.json, { name, token }, () => token)
    if (isFirst && spec.expiresAt !== undefined) {
      warn(
        `"${name}" is the only administrator, and expires on ${at(spec.expiresAt)}. Create another before then`,
      )
    }
  }
  await withAccessTokens(flags, create, true)
}

/** Refuses a change that would leave nobody who can undo it, with the command to type instead. */
async function refuseLockOut(
  book: AccessTokens,
  change: TokenChange,
  { store, server }: ConnectionFlags,
): Promise<void> {
  const why = await book.lockOut(change)
  if (why === undefined) return
  const place = store === undefined ? server && ` --server ${server}` : ` --store ${store}`
  throw new Exit(
    EXIT.failed,
    `${why}. Create an administrator first: ${CREATE_ADMINISTRATOR}${place ?? ''}`,
  )
}

/** On standard error, so that a script still gets only the access token. */
function warn(message: string): void {
  process.stderr.write(`leasehold: ${message}\n`)
}

async function revokeToken(name: string, flags: RevokeFlags): Promise<void> {
  await withAccessTokens(flags, async (book, by) => {
    const others = book.list().filter((entry) => entry.name !== name)
    if (others.length === 0 && !book.isEmpty && !flags.openToEverybody) {
      throw new Exit(
        EXIT.failed,
        `"${name}" is the last access token, and without one everybody may do everything. Create another first, or use --open-to-everybody`,
      )
    }
    await refuseLockOut(book, { removes: ({ entry }) => entry.name === name }, flags)
    if (await book.revoke(name, by)) return
    throw new Exit(EXIT.notThere, `"${name}" has no access token`)
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

interface Shown extends Omit<AccessTokenEntry, 'rights'> {
  readonly rights: readonly string[]
}

function shown(entry: AccessTokenEntry): Shown {
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
