/** How leases end, and claims by force. */
export const LEASE_ENDS = `
-- Ends leases with all descendants in the revision of the batch. All their claims are removed before
-- any waiter is promoted: otherwise a lease that is about to end could hold for an instant.
-- Heartbeats stay until the end is forgotten: a renewal may be writing one, and must not be waited for.
create function @.end_leases(b @.batch, roots bigint[], ending jsonb) returns @.batch language plpgsql as $body$
declare
  ids bigint[] := roots;
  keys text[];
begin
  if exists (select from @.leases l where l.parent = any (roots)) then
    with recursive family (id, depth) as (
      select root, 0 from unnest(roots) as root
      union all select l.id, f.depth + 1 from @.leases l join family f on l.parent = f.id
    )
    select array_agg(f.id order by f.depth, f.id desc) into ids from family f;
  end if;
  with gone as (
    delete from @.claims c using @.leases l where c.lease = any (ids) and l.id = c.lease
    returning c.*, l.holder
  ), notified as (
    insert into @.events (revision, number, kind, key, token, lease, holder, standing, value, at,
      ending, held_since)
    select b.revision,
      b.events + row_number() over (order by array_position(ids, g.lease), g.token desc), 2, g.key,
      g.token, g.lease, g.holder, g.standing, g.value, b.now, ending, g.held_since from gone g
  )
  select array_agg(distinct g.key), count(*) into keys, b.claims_removed from gone g;
  delete from @.leases l where l.id = any (ids);
  insert into @.ended (lease, number, ending)
    select id, b.ended + number, $3 from unnest(ids) with ordinality as gone (id, number);
  b.leases_ended := cardinality(ids);
  b.leases := b.leases - b.leases_ended;
  b.ended := b.ended + b.leases_ended;
  b.events := b.events + b.claims_removed;
  b.notified := b.notified || ids;
  if b.lease = any (ids) then
    b.lease := null;
    b.held := null;
  end if;
  for at in 1 .. coalesce(cardinality(keys), 0) loop
    b := @.settle(b, keys[at]);
  end loop;
  return b;
end $body$;

-- Ends a lease whose time is over. First removes the heartbeat, and only if nothing is writing it: a
-- renewal that came before us has saved the lease, one that comes after finds nothing.
create function @.expire(b @.batch, overdue bigint) returns @.batch language plpgsql as $body$
declare
  l @.leases;
  due float8;
begin
  b.done := false;
  select * into l from @.leases where id = overdue;
  if not found then return b; end if;
  delete from @.heartbeats h where h.ctid = (
    select beat.ctid from @.heartbeats beat where beat.lease = overdue
      and @.deadline(beat.renewed_at, b.restarted_at, l.ttl, l.grace, l.end_of_life) <= b.now
    for update skip locked
  ) returning @.deadline(h.renewed_at, b.restarted_at, l.ttl, l.grace, l.end_of_life) into due;
  if not found then return b; end if;
  b.revision := b.revision + 1;
  b := @.end_leases(b, array[overdue], case
    when due < l.end_of_life then '{"reason": "expired"}'
    else coalesce(l.capped_by,
      '{"reason": "expired", "why": "it reached the end of its maximum life"}') end);
  b.done := true;
  return b;
end $body$;

-- Removes claims by force; their leases stay alive.
create function @.remove_claims(b @.batch, keys text[], tokens bigint[], ending jsonb) returns @.batch language plpgsql as $body$
declare
  touched text[];
  losers bigint[];
begin
  b := @.put_lease(b);
  with gone as (
    delete from @.claims c using unnest(keys, tokens) as meant (key, token), @.leases l
    where c.key = meant.key and c.token = meant.token and l.id = c.lease
    returning c.*, l.holder
  ), notified as (
    insert into @.events (revision, number, kind, key, token, lease, holder, standing, value, at,
      ending, held_since, forced)
    select b.revision, b.events + row_number() over (order by g.key, g.token), 2, g.key, g.token,
      g.lease, g.holder, g.standing, g.value, b.now, ending, g.held_since, true from gone g
  )
  select array_agg(distinct g.key), array_agg(distinct g.lease), count(*)
    into touched, losers, b.claims_removed from gone g;
  update @.leases l set claims = (select count(*) from @.claims c where c.lease = l.id)
    where l.id = any (losers);
  b.events := b.events + b.claims_removed;
  b.notified := b.notified || losers;
  for at in 1 .. cardinality(touched) loop
    b := @.settle(b, touched[at]);
  end loop;
  return b;
end $body$;

-- Gives leases a final deadline, in the revision of the batch.
create function @.cap_leases(b @.batch, ids bigint[], life float8, ending jsonb) returns @.batch language plpgsql as $body$
begin
  update @.leases l set end_of_life = life, capped_by = ending, capped_at = b.revision,
    look_at = least(l.look_at, life) where l.id = any (ids);
  b.next_due := least(b.next_due, life);
  b.notified := b.notified || ids;
  return b;
end $body$;
`
