/**
 * The queues of claims on keys, and which claims hold: `holds()` of the port, step by step. A claim
 * that holds has `held_since`; the holders are always the first of their queue.
 */
export const QUEUES = `
create function @.claim_json(c @.claims, restarted float8)
returns jsonb language plpgsql stable as $body$ begin return (
  select jsonb_build_array(c.key, c.token, c.lease, l.holder, c.standing, c.value, c.claimed_at,
    c.held_since, @.deadline(h.renewed_at, restarted, l.ttl, l.grace, l.end_of_life))
  from @.leases l left join @.heartbeats h on h.lease = l.id where l.id = c.lease
); end $body$;

-- The claims before a position on a key.
create function @.ahead(wanted text, places bigint, restarted float8)
returns jsonb language plpgsql stable as $body$ begin return (
  select jsonb_build_array(wanted, places, @.claim_json(c, restarted))
  from @.claims c where c.key = wanted order by c.token limit 1
); end $body$;

-- Whether a claim with this mode, at the end of the queue, would hold at once.
create function @.would_hold(wanted text, standing integer) returns boolean language plpgsql as $body$
declare
  last @.claims;
begin
  select * into last from @.claims c where c.key = wanted order by c.token desc limit 1;
  if not found then return true; end if;
  if last.held_since is null or last.standing = -1 or standing = -1 then return false; end if;
  if standing = 0 then return true; end if;
  return (select count(*) from @.claims c where c.key = wanted) < standing;
end $body$;

-- Ends overdue leases at the front of a key, and checks that its queue has room. A lease that is
-- being renewed at this moment is left alone.
create function @.make_room(b @.batch, wanted text) returns @.batch language plpgsql as $body$
declare
  first bigint;
  due float8;
  places bigint;
begin
  loop
    select l.id, @.deadline(h.renewed_at, b.restarted_at, l.ttl, l.grace, l.end_of_life)
      into first, due
      from @.claims c join @.leases l on l.id = c.lease left join @.heartbeats h on h.lease = l.id
      where c.key = wanted order by c.token limit 1;
    b.free := not found;
    if b.free then return b; end if;
    exit when due > b.now;
    b := @.expire(b, first);
    exit when not b.done;
  end loop;
  select count(*) into places from @.claims c where c.key = wanted;
  if places >= b.limits[1] then
    b.answer := jsonb_build_array('key-full', wanted, places);
  end if;
  return b;
end $body$;

create function @.are_free(specs jsonb) returns boolean language plpgsql as $body$
begin
  for at in 0 .. jsonb_array_length(specs) - 1 loop
    if not @.would_hold(specs->at->>0, (specs->at->>1)::integer) then return false; end if;
  end loop;
  return true;
end $body$;

create function @.busy(b @.batch, specs jsonb) returns jsonb language plpgsql as $body$
declare
  ahead jsonb := '[]';
  wanted text;
begin
  for at in 0 .. jsonb_array_length(specs) - 1 loop
    wanted := specs->at->>0;
    if not @.would_hold(wanted, (specs->at->>1)::integer) then
      ahead := ahead || jsonb_build_array(@.ahead(wanted,
        (select count(*) from @.claims c where c.key = wanted), b.restarted_at));
    end if;
  end loop;
  return jsonb_build_array('busy', b.revision, ahead);
end $body$;

-- Adds the claims of one call at the ends of their queues. Returns the claims before them.
create function @.add_claims(b @.batch, specs jsonb, free boolean) returns @.batch language plpgsql as $body$
declare
  ahead jsonb := '[]';
  spec jsonb;
  holds boolean;
begin
  for at in 0 .. jsonb_array_length(specs) - 1 loop
    spec := specs->at;
    holds := free or @.would_hold(spec->>0, (spec->>1)::integer);
    b.events := b.events + 1;
    with made as (
      insert into @.claims (key, token, lease, standing, value, claimed_at, held_since)
      values (spec->>0, b.revision, b.lease, (spec->>1)::integer, spec->>2, b.now,
        case when holds then b.now end)
    )
    insert into @.events (revision, number, kind, key, token, lease, holder, standing, value, at)
      values (b.revision, b.events, case when holds then 4 else 0 end, spec->>0, b.revision, b.lease, b.holder,
        (spec->>1)::integer, spec->>2, b.now);
    if not holds then
      ahead := ahead || jsonb_build_array(@.ahead(spec->>0,
        (select count(*) - 1 from @.claims c where c.key = spec->>0), b.restarted_at));
    end if;
  end loop;
  b.held := b.held + jsonb_array_length(specs);
  b.answer := ahead;
  return b;
end $body$;

-- After claims were removed from a key: lets the claims behind them hold, and records whom to notify.
create function @.settle(b @.batch, wanted text) returns @.batch language plpgsql as $body$
declare
  next @.claims;
  holders bigint;
  alone boolean;
begin
  select * into next from @.claims c where c.key = wanted order by c.token desc limit 1;
  if not found or next.held_since is not null then return b; end if;
  select count(*), coalesce(bool_or(c.standing = -1), false) into holders, alone
    from @.claims c where c.key = wanted and c.held_since is not null;
  loop
    select * into next from @.claims c
      where c.key = wanted and c.held_since is null order by c.token limit 1;
    exit when not found;
    exit when holders > 0 and (alone or next.standing = -1
      or (next.standing > 0 and holders >= next.standing));
    if exists (select from @.claims c where c.lease = next.lease and c.token = next.token
      and c.key <> wanted and c.held_since is null) then
      update @.claims c set held_since = b.now where c.key = wanted and c.token = next.token;
    else
      -- Written to each of them: it could not be found out later from those that are left.
      update @.claims c set held_since = coalesce(c.held_since, b.now), held_at = b.revision
        where c.lease = next.lease and c.token = next.token;
      b.notified := b.notified || next.lease;
    end if;
    b.events := b.events + 1;
    insert into @.events (revision, number, kind, key, token, lease, holder, standing, value, at)
      select b.revision, b.events, 3, wanted, next.token, next.lease, l.holder, next.standing,
        next.value, b.now from @.leases l where l.id = next.lease;
    holders := holders + 1;
    alone := next.standing = -1;
  end loop;
  return b;
end $body$;
`
