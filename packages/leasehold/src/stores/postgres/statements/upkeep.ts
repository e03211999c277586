/** What is done besides the commands: renewals, expiry, forgetting. */
export const UPKEEP = `
-- Renews leases and returns the exceptions. It does not pass the turnstile and waits only for another
-- renewal, or the expiry, of the same lease. The time is that which a batch would have now. Leases
-- are renewed in the order of their numbers, so that two renewals cannot deadlock: hence the loops,
-- which keep that order.
create function @.renew(ids bigint[]) returns jsonb language plpgsql
@planned set enable_hashjoin = off set enable_mergejoin = off as $body$
declare
  now float8;
  restarted float8;
  renewed bigint[];
  capped jsonb;
  lost jsonb;
begin
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  select greatest(@.clock() + m.clock_offset, m.last_time), m.restarted_at into now, restarted from @.meta m where m.one;
  with beat as (
    update @.heartbeats h set renewed_at = greatest(h.renewed_at, now)
    from (select id from unnest(ids) as id order by id) as w join @.leases l on l.id = w.id
    where h.lease = w.id
    returning h.lease, l.end_of_life, l.capped_by,
      @.deadline(h.renewed_at, restarted, l.ttl, l.grace, l.end_of_life) as due
  )
  select array_agg(b.lease),
    jsonb_agg(jsonb_build_array(b.lease, greatest(b.end_of_life - now, 0), b.capped_by))
      filter (where b.end_of_life < 'infinity' and b.due = b.end_of_life)
    into renewed, capped from beat b;
  if coalesce(cardinality(renewed), 0) < cardinality(ids) then
    select jsonb_agg(jsonb_build_array(id, e.ending)) into lost
      from unnest(ids) as id left join @.ended e on e.lease = id where id <> all (coalesce(renewed, '{}'));
  end if;
  return jsonb_build_array(coalesce(lost, '[]'), coalesce(capped, '[]'));
end $body$;

-- Expires what is due, checking at most this many leases. One process does this for all, until it
-- is late by the given grace: then another takes over.
create function @.sweep(wait_ms integer, me text, most integer, grace float8) returns jsonb language plpgsql @planned as $body$
declare
  b @.batch;
  looked bigint[];
  due bigint;
begin
  if exists (select from @.meta m where m.one and m.sweeper <> me
    and m.next_due + grace > @.clock() + m.clock_offset) then
    return (select jsonb_build_array(m.next_due - @.clock() - m.clock_offset, m.sweeper, false) from @.meta m where m.one);
  end if;
  b := @.begin_batch(wait_ms, '{}');
  looked := array(select l.id from @.leases l where l.look_at <= b.now order by l.look_at, l.id limit most);
  if cardinality(looked) > 0 then
    update @.leases l set look_at = d.due from (
      select i.id, @.deadline(h.renewed_at, b.restarted_at, i.ttl, i.grace, i.end_of_life) as due
      from @.leases i left join @.heartbeats h on h.lease = i.id where i.id = any (looked)
    ) as d where l.id = d.id and l.look_at <> d.due;
    -- In the order of their current deadlines: a lease that ended before another must not get to hold
    -- what that one leaves.
    for due in select l.id from @.leases l where l.id = any (looked) and l.look_at <= b.now order by l.look_at, l.id loop
      b := @.expire(b, due);
    end loop;
  end if;
  b.next_due := coalesce((select min(l.look_at) from @.leases l where l.look_at < 'infinity'), 'infinity');
  if (b.before).sweeper is distinct from me then
    update @.meta set sweeper = me where one;
  end if;
  perform @.finish_batch(b, 0);
  return jsonb_build_array(b.next_due - b.now, me, cardinality(looked) = most);
end $body$;

create function @.resign(me text) returns void language plpgsql as $body$
begin
  update @.meta set sweeper = null where sweeper = me;
  if found then perform pg_notify('@channel', 'd0'); end if;
end $body$;

-- Prefixes are watched for this long.
create function @.watch_on(span float8) returns void language sql as $$
  update @.meta set watched_until = @.clock() + clock_offset + span
  where watched_until < @.clock() + clock_offset + span / 2
$$;

-- Forgets what need not be kept, a limited amount at a time. Only one process at a time does so, and
-- nothing waits for it: it touches only what no other statement writes.
create function @.tidy(most integer) returns boolean language plpgsql @planned as $body$
declare
  m @.meta;
  requests_to bigint;
  ended_to bigint;
  events_to bigint;
  complete bigint;
begin
  if not pg_try_advisory_xact_lock(hashtext('@channel'), 2) then return false; end if;
  perform set_config('synchronous_commit', 'off', true);
  select * into strict m from @.meta where one;
  requests_to := greatest(m.requests_gone, least(m.requests_gone + most, m.requests - m.requests_kept));
  delete from @.requests where number > m.requests_gone and number <= requests_to;
  ended_to := greatest(m.ended_gone, least(m.ended_gone + most, m.ended - m.ended_kept));
  with gone as (
    delete from @.ended where number > m.ended_gone and number <= ended_to returning lease
  )
  delete from @.heartbeats h using gone g where h.lease = g.lease;
  events_to := greatest(m.events_gone, least(m.events_gone + most, m.events - m.events_kept));
  with old as (
    select e.revision, e.number from @.events e where e.revision >= m.complete_after
    order by e.revision, e.number limit most
  ), gone as (
    delete from @.events e using old o
    where e.revision = o.revision and e.number = o.number and e.number <= events_to
    returning e.revision
  )
  select max(g.revision) into complete from gone g;
  update @.meta set requests_gone = requests_to, ended_gone = ended_to, events_gone = events_to,
    complete_after = greatest(complete_after, complete) where one;
  return m.requests - requests_to > m.requests_kept or m.ended - ended_to > m.ended_kept
    or m.events - events_to > m.events_kept;
end $body$;
`
