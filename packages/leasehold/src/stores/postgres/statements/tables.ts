/**
 * The tables. `@.` stands for the schema.
 *
 * `meta` is one row, and its lock is the store's turnstile: every change locks it first, so that
 * changes happen one after the other, have revisions without gaps, and become visible in the order
 * of their revisions. So nothing can deadlock or miss an event, and the revision can be the token.
 * Carrying out many calls at once makes up for the cost.
 *
 * Renewals do not pass the turnstile. They only write `heartbeats`, a table of two numbers per row and
 * no index but its key, so that each is a HOT update on its page. `leases.look_at` says when a lease
 * is checked next. A renewal does not change it: it may be too early, and then the lease is found
 * alive and postponed.
 */
export const TABLES = `
create table @.meta (
  one boolean primary key default true check (one),
  revision bigint not null default 0,
  leases bigint not null default 0,
  -- The numbers of the latest event, request and ended lease, and of the last forgotten one.
  events bigint not null default 0,
  requests bigint not null default 0,
  ended bigint not null default 0,
  events_gone bigint not null default 0,
  requests_gone bigint not null default 0,
  ended_gone bigint not null default 0,
  -- Every event after this revision is here.
  complete_after bigint not null default 0,
  events_kept bigint not null default 0,
  requests_kept bigint not null default 0,
  ended_kept bigint not null default 0,
  -- The store's time: the server's clock plus the offset, and never less than the last one.
  last_time float8 not null default 0,
  clock_offset float8 not null default 0,
  -- Which life of which server this is, and since when: leases have a full ttl from then on.
  server_start timestamptz,
  timeline text,
  restarted_at float8 not null default 0,
  -- What was reported before this revision may not have happened: commits were lost.
  memory_from bigint not null default 0,
  -- Which process handles the deadlines, and when the next one may be.
  sweeper text,
  next_due float8 not null default 'infinity',
  -- Prefixes are watched until then, and notifications are needed.
  watched_until float8 not null default 0
) with (fillfactor = 10);
insert into @.meta default values;

create table @.leases (
  id bigint primary key,
  holder text not null,
  ttl float8 not null,
  grace float8 not null,
  granted_at float8 not null,
  end_of_life float8 not null,
  look_at float8 not null,
  claims bigint not null default 0,
  parent bigint,
  labels jsonb,
  capped_by jsonb,
  capped_at bigint
) with (fillfactor = 50);
create index on @.leases (look_at) where look_at < 'infinity';
create index on @.leases (parent) where parent is not null;

create table @.heartbeats (
  lease bigint primary key,
  renewed_at float8 not null
) with (fillfactor = 40);

-- standing: -1 for exclusive, 0 for shared, or the limit of a shared one. held_at: if claims of one
-- call had to wait, the revision in which the last of them began to hold.
create table @.claims (
  key text collate "C" not null,
  token bigint not null,
  lease bigint not null,
  standing integer not null,
  value text,
  claimed_at float8 not null,
  held_since float8,
  held_at bigint,
  primary key (key, token)
) with (fillfactor = 80);
create index on @.claims (lease, token);
-- The claims that had to wait.
create index on @.claims (lease, held_at) where held_at > token;

-- kind: 0 claimed, 1 updated, 2 removed, 3 held, 4 claimed and held at once.
-- held_since only if a holding claim was removed; forced if its lease stays alive without it.
create table @.events (
  revision bigint not null,
  number bigint not null,
  kind smallint not null,
  key text collate "C" not null,
  token bigint not null,
  lease bigint not null,
  holder text not null,
  standing integer not null,
  value text,
  at float8 not null,
  ending jsonb,
  held_since float8,
  forced boolean not null default false,
  primary key (revision, number)
);
create index on @.events (key, revision) where held_since is not null;
create index on @.events (lease, revision) where forced;

create table @.requests (
  id text collate "C" primary key,
  number bigint not null,
  answer jsonb not null
);
create index on @.requests (number);

create table @.ended (
  lease bigint primary key,
  number bigint not null,
  ending jsonb not null
);
create index on @.ended (number);
`
