/**
 * A batch: one transaction's passage through the turnstile. `begin_batch` locks `meta` and reads the
 * time, the commands pass the batch on, and `finish_batch` writes the result and notifies the leases
 * that are concerned.
 */
export const BATCH = `
create type @.batch as (
  revision bigint,
  now float8,
  leases bigint,
  events bigint,
  ended bigint,
  next_due float8,
  clock_offset float8,
  restarted_at float8,
  -- As it was at the beginning.
  before @.meta,
  -- claims per key, claims per lease, children per lease, depth, leases in total, a page
  limits integer[],
  -- The lease that was used last: its holder, how many claims it has, and how many are written.
  lease bigint,
  holder text,
  held bigint,
  held_written bigint,
  -- Leases whose holders must be notified.
  notified bigint[],
  -- The result of the last step.
  answer jsonb,
  free boolean,
  done boolean,
  leases_ended bigint,
  claims_removed bigint
);

create function @.clock() returns float8 language sql volatile as
  $$ select extract(epoch from clock_timestamp())::float8 * 1000 $$;

create function @.deadline(renewed float8, restarted float8, ttl float8, grace float8, life float8)
returns float8 language sql immutable as
  $$ select least(greatest(renewed, restarted) + ttl + grace, life) $$;

-- A server that was promoted, or restored, may have lost acknowledged commits. Its revisions continue
-- far above any of those, so that no token is ever used twice, and watches are interrupted,
-- so that they read again.
create function @.begin_batch(wait_ms integer, limits integer[])
returns @.batch language plpgsql as $body$
declare
  m @.meta;
  b @.batch;
  here text;
begin
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  perform set_config('lock_timeout', wait_ms::text, true);
  select * into strict m from @.meta where one for update;
  b.before := m;
  b.revision := m.revision;
  b.leases := m.leases;
  b.events := m.events;
  b.ended := m.ended;
  b.next_due := m.next_due;
  b.restarted_at := m.restarted_at;
  b.clock_offset := m.clock_offset;
  b.limits := limits;
  b.notified := '{}';
  b.now := @.clock() + m.clock_offset;
  if b.now < m.last_time then
    b.clock_offset := m.clock_offset + (m.last_time - b.now);
    b.now := m.last_time;
  end if;
  here := left(pg_walfile_name(pg_current_wal_lsn()), 8);
  if m.timeline is distinct from here or m.server_start is distinct from pg_postmaster_start_time() then
    if m.timeline <> here then
      b.revision := b.revision + 4294967296;
      update @.meta set complete_after = b.revision, memory_from = b.revision where one;
    end if;
    b.restarted_at := b.now;
    update @.meta set timeline = here, server_start = pg_postmaster_start_time(),
      restarted_at = b.now where one;
  end if;
  return b;
end $body$;

create function @.finish_batch(b @.batch, requested bigint) returns void language plpgsql as $body$
declare
  m @.meta := b.before;
  line text;
begin
  b := @.put_lease(b);
  if b.revision > m.revision or requested > 0 or b.next_due <> m.next_due
    or b.clock_offset <> m.clock_offset then
    update @.meta set revision = b.revision, leases = b.leases, events = b.events,
      ended = b.ended, requests = requests + requested, last_time = b.now,
      clock_offset = b.clock_offset, next_due = b.next_due where one;
  end if;
  if cardinality(b.notified) > 0 then
    for line in
      select string_agg(lease::text, ',')
      from (select lease, (row_number() over () - 1) / 400 as part from unnest(b.notified) as lease) as notified
      group by part
    loop
      perform pg_notify('@channel', 'l' || line);
    end loop;
  end if;
  if b.events > m.events and m.watched_until > b.now then
    perform pg_notify('@channel', 'e');
  end if;
  if b.next_due < m.next_due then
    perform pg_notify('@channel', 'd' || ceil(greatest(b.next_due - b.now, 0)));
  end if;
end $body$;

-- An answer that was too large to be sent with the others.
create function @.stored(wanted text) returns jsonb language plpgsql stable @planned as $body$
begin
  return (select r.answer from @.requests r where r.id = wanted);
end $body$;

-- Carries out calls, each in its own revision, and answers each. Returned first: how long until the
-- next deadline, which process handles it, and whether there is something to forget.
create function @.calls(wait_ms integer, limits integer[], calls jsonb)
returns jsonb language plpgsql @planned as $body$
declare
  b @.batch := @.begin_batch(wait_ms, limits);
  m @.meta := b.before;
  call jsonb;
  request text;
  known jsonb;
  answers jsonb[] := '{}';
  ids text[] := '{}';
  kept jsonb[] := '{}';
begin
  for at in 0 .. jsonb_array_length(calls) - 1 loop
    request := calls->at->>1;
    if request is not null then ids := ids || request; end if;
  end loop;
  if cardinality(ids) > 0 then
    select jsonb_object_agg(r.id, r.answer) into known from @.requests r where r.id = any (ids);
    ids := '{}';
  end if;
  for at in 0 .. jsonb_array_length(calls) - 1 loop
    call := calls->at;
    request := call->>1;
    b.answer := known->request;
    if b.answer is null then
      case call->>0
        when 'claim' then b := @.do_claim(b, call);
        when 'release' then b := @.do_release(b, call);
        when 'grant' then b := @.do_grant(b, call);
        when 'update' then b := @.do_update(b, call);
        when 'revoke' then b := @.do_revoke(b, call);
      end case;
      -- An answer is sent before the commit. One that is too large for the buffers on the way would have
      -- to wait for its reader, with all others behind it.
      if request is null and pg_column_size(b.answer) > 2048 then
        request := chr(1) || 'n' || (m.requests + cardinality(ids));
      end if;
      if request is not null then
        ids := ids || request;
        kept := kept || b.answer;
      end if;
    end if;
    answers := answers || case when pg_column_size(b.answer) > 2048
      then jsonb_build_array('stored', request) else b.answer end;
  end loop;
  if cardinality(ids) > 0 then
    insert into @.requests (id, number, answer)
      select id, m.requests + number, answer
      from unnest(ids, kept) with ordinality as kept (id, answer, number);
  end if;
  perform @.finish_batch(b, cardinality(ids));
  return jsonb_build_array(b.next_due - b.now, m.sweeper,
    m.requests - m.requests_gone > m.requests_kept + 2000
      or m.events - m.events_gone > m.events_kept + 2000
      or m.ended - m.ended_gone > m.ended_kept + 2000,
    to_jsonb(answers));
end $body$;
`
