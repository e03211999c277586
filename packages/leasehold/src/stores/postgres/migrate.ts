import { LeaseholdError, withTimeout } from '../../port/index.ts'
import { unanswered } from './calls/call-deadlines.ts'
import type { Connection } from './client.ts'
import { faultOf, OTHER_FORM } from './faults.ts'
import { channelOf, type PostgresStoreOptions, type Settings, schemaOf } from './options.ts'
import { MIGRATIONS } from './statements/index.ts'

/** The version of the schema that this release knows. */
export const SCHEMA_VERSION = MIGRATIONS.length

const INSUFFICIENT_PRIVILEGE = '42501'
const SERVER_MIN = 150000
/** How long creating the schema may take, or waiting for others that do. At least the timeout. */
const MIGRATION_MS = 60_000

/**
 * The SQL that brings a schema of any known version, or none, up to date. It is one transaction that
 * may run concurrently and repeatedly. Use it if only administrators may create tables.
 */
export function postgresMigration(options: Pick<PostgresStoreOptions, 'schema'> = {}): string {
  const schema = schemaOf(options.schema)
  const channel = channelOf(schema)
  const steps = MIGRATIONS.map((sql, index) => {
    const text = sql.replaceAll('@.', `${schema}.`).replaceAll('@channel', channel)
    return `  if version < ${index + 1} then
    execute $step$${text}$step$;
    insert into ${schema}.migrations (version) values (${index + 1});
  end if;`
  })
  return `do $migration$
declare
  version integer;
begin
  perform ${schemaLock(schema)};
  if to_regclass('${schema}.migrations') is null then
    ${refuseOther(schema, 'entry', 'a log of postgresLog, form=log')}
    execute 'create schema if not exists ${schema}';
    execute 'create table ${schema}.migrations (version integer primary key, at timestamptz not null default clock_timestamp())';
  end if;
  execute 'select coalesce(max(version), 0) from ${schema}.migrations' into version;
${steps.join('\n')}
end $migration$;
`
}

/** SQL: creating tables in the schema, in either form, waits for others that do the same. */
export function schemaLock(schema: string): string {
  return `pg_advisory_xact_lock(hashtext('${channelOf(schema)}'), 1)`
}

/** A statement of plpgsql that fails if the schema has a table of the other form. */
export function refuseOther(schema: string, table: string, other: string): string {
  return `if to_regclass('${schema}.${table}') is not null then
      raise exception 'the schema ${schema} holds ${other}: the table ${schema}.${table}' using errcode = '${OTHER_FORM}';
    end if;`
}

/** Makes sure that the schema exists and has a known version. */
export async function prepareSchema(given: Settings): Promise<readonly string[]> {
  const settings = { ...given, connection: withTimeouts(given) }
  const { connection, schema, migrate } = settings
  try {
    const server = await serverOf(settings)
    const version = await versionOf(settings)
    if (version > SCHEMA_VERSION) throw tooNew(schema, version)
    if (version < SCHEMA_VERSION) {
      if (!migrate) throw notMigrated(schema, version)
      await connection.script(postgresMigration({ schema }))
    }
    await keepAtLeast(settings)
    return server
  } catch (error) {
    if ((error as { code?: unknown }).code === INSUFFICIENT_PRIVILEGE) throw noRight(schema, error)
    throw faultOf(error)
  }
}

/** A connection on which no statement takes forever: a database may accept it and never answer. */
function withTimeouts({ connection, clock, timeout }: Settings): Connection {
  const limited = <Answer>(ms: number, answer: Promise<Answer>) =>
    withTimeout(clock, clock.now() + ms, answer, () => unanswered(ms))
  return {
    ...connection,
    ask: (text, values, name) => limited(timeout, connection.ask(text, values, name)),
    script: (text) => limited(Math.max(timeout, MIGRATION_MS), connection.script(text)),
  }
}

async function versionOf({ connection, schema }: Settings): Promise<number> {
  const there = await connection.ask('select to_regclass($1::text) is not null', [
    `${schema}.migrations`,
  ])
  if (!there) return 0
  const version = `select coalesce(max(version), 0)::text from ${schema}.migrations`
  return Number(await connection.ask(version, []))
}

/** Refuses a server that cannot be used. Returns what a user must know about the server. */
async function serverOf({ connection }: Settings): Promise<readonly string[]> {
  const text = `select json_build_array(current_setting('server_version_num'),
    current_setting('server_encoding'), current_setting('default_transaction_isolation'),
    current_setting('fsync'), current_setting('full_page_writes'))::text`
  const [number, encoding, isolation, fsync, pages] = JSON.parse(
    String(await connection.ask(text, [])),
  ) as [string, string, string, string, string]
  if (Number(number) < SERVER_MIN) {
    throw unsupported(`PostgreSQL is of version ${number}: at least 15 is needed`)
  }
  if (encoding !== 'UTF8') {
    throw unsupported(`the database's encoding is ${encoding}: create one with UTF8`)
  }
  if (isolation !== 'read committed') {
    throw unsupported(
      `default_transaction_isolation is '${isolation}': set it to 'read committed' for this user (alter role … set …)`,
    )
  }
  const unsafe = [fsync === 'off' && 'fsync', pages === 'off' && 'full_page_writes'].filter(Boolean)
  return unsafe.map(
    (name) => `${name} is off: a crash of the machine may lose or damage everything.`,
  )
}

/** The most that any store on this schema was opened to keep. */
async function keepAtLeast({ connection, schema, limits }: Settings): Promise<void> {
  const kept = [Math.max(limits.events, limits.history), limits.requests, limits.ended]
  await connection.ask(
    `update ${schema}.meta set events_kept = greatest(events_kept, $1::text::bigint),
      requests_kept = greatest(requests_kept, $2::text::bigint),
      ended_kept = greatest(ended_kept, $3::text::bigint)
      where events_kept < $1::text::bigint or requests_kept < $2::text::bigint
        or ended_kept < $3::text::bigint`,
    kept.map(String),
  )
}

function unsupported(message: string): LeaseholdError {
  return new LeaseholdError('unsupported', message)
}

function tooNew(schema: string, version: number): LeaseholdError {
  return unsupported(
    `the schema ${schema} is of version ${version} and this release knows ${SCHEMA_VERSION}: update leasehold`,
  )
}

function notMigrated(schema: string, version: number): LeaseholdError {
  const state = version === 0 ? 'is not there' : `is of version ${version}, not ${SCHEMA_VERSION}`
  return unsupported(
    `the schema ${schema} ${state}, and migrate is false: run what postgresMigration() prints, or open the store with migrate`,
  )
}

function noRight(schema: string, cause: unknown): LeaseholdError {
  const said = (cause as Error).message
  return new LeaseholdError(
    'forbidden',
    `the database user may not create or use the schema ${schema} (${said}): grant it the right, or have somebody run what postgresMigration() prints and grant usage on it, and open the store with migrate: false`,
    { cause },
  )
}
