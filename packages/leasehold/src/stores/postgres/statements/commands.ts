/**
 * The commands, as the kernel carries them out: each checks everything before it changes anything.
 * A call is an array: the command, the request id or null, and the arguments. Answers are arrays,
 * too; a refusal contains only what the caller does not know already.
 */
export const COMMANDS = `
-- Why the lease does not exist.
create function @.no_lease(wanted bigint)
returns jsonb language plpgsql stable as $body$ begin return (
  select jsonb_build_array('no-lease', (select e.ending from @.ended e where e.lease = wanted))
); end $body$;

-- Writes the number of claims of the lease that was used last. Most calls of a batch are for one
-- lease, and writing its row with each of them would leave as many versions of it behind.
create function @.put_lease(b @.batch) returns @.batch language plpgsql as $body$
begin
  if b.held <> b.held_written then
    update @.leases l set claims = b.held where l.id = b.lease;
  end if;
  b.lease := null;
  b.held := null;
  return b;
end $body$;

-- Looks up a lease, unless it is the one that was used last; lease is null if there is none.
create function @.use_lease(b @.batch, wanted bigint) returns @.batch language plpgsql as $body$
begin
  if b.lease = wanted then return b; end if;
  b := @.put_lease(b);
  select l.id, l.holder, l.claims, l.claims into b.lease, b.holder, b.held, b.held_written
    from @.leases l where l.id = wanted;
  return b;
end $body$;

-- Why a lease has no claim with this token on one of these keys.
create function @.no_claim(wanted bigint, held bigint, keys text[]) returns jsonb language plpgsql as $body$
declare
  missing text;
begin
  if not exists (select from @.leases l where l.id = wanted) then return @.no_lease(wanted); end if;
  select k into missing from unnest(keys) with ordinality as named (k, place)
    where not exists (select from @.claims c where c.key = k and c.token = held and c.lease = wanted)
    order by place limit 1;
  return jsonb_build_array('no-claim', missing,
    (select c.token from @.claims c where c.key = missing order by c.token limit 1));
end $body$;

-- Removes the claims of a lease with a token from these keys, in a new revision, or answers why not.
create function @.take_claims(b @.batch, owner bigint, held bigint, names jsonb)
returns @.batch language plpgsql as $body$
declare
  keys text[];
  removed bigint;
begin
  b := @.use_lease(b, owner);
  if jsonb_array_length(names) = 1 then
    with gone as (
      delete from @.claims c where c.key = names->>0 and c.token = held and c.lease = owner
      returning c.*
    )
    insert into @.events (revision, number, kind, key, token, lease, holder, standing, value, at,
      ending, held_since)
    select b.revision + 1, b.events + 1, 2, g.key, g.token, g.lease, b.holder, g.standing, g.value,
      b.now, '{"reason": "released"}', g.held_since from gone g;
    if not found then
      b.answer := @.no_claim(owner, held, array[names->>0]);
      return b;
    end if;
    removed := 1;
  else
    keys := array(select jsonb_array_elements_text(names));
    select count(*) into removed from @.claims c
      where c.key = any (keys) and c.token = held and c.lease = owner;
    if removed < cardinality(keys) then
      b.answer := @.no_claim(owner, held, keys);
      return b;
    end if;
    with gone as (
      delete from @.claims c where c.key = any (keys) and c.token = held and c.lease = owner
      returning c.*
    )
    insert into @.events (revision, number, kind, key, token, lease, holder, standing, value, at,
      ending, held_since)
    select b.revision + 1, b.events + row_number() over (), 2, g.key, g.token, g.lease, b.holder,
      g.standing, g.value, b.now, '{"reason": "released"}', g.held_since from gone g;
  end if;
  b.revision := b.revision + 1;
  b.events := b.events + removed;
  b.held := b.held - removed;
  for at in 0 .. removed - 1 loop
    b := @.settle(b, names->>at::integer);
  end loop;
  return b;
end $body$;

-- claim, request, lease, ifFree, [[key, standing, value], ...], the token that they replace or null
create function @.do_claim(b @.batch, call jsonb) returns @.batch language plpgsql as $body$
declare
  wanted bigint := (call->2)::bigint;
  specs jsonb := call->4;
  places integer := jsonb_array_length(specs);
  free boolean := true;
begin
  for at in 0 .. places - 1 loop
    b := @.make_room(b, specs->at->>0);
    if b.answer is not null then return b; end if;
    free := free and b.free;
  end loop;
  -- Looked up last: preparing the keys may have ended this very lease.
  b := @.use_lease(b, wanted);
  if b.lease is null then
    b.answer := @.no_lease(wanted);
  elsif call->>5 is not null then
    b := @.take_claims(b, wanted, (call->5)::bigint, jsonb_path_query_array(specs, '$[*][0]'));
    if b.answer is not null then return b; end if;
    b := @.add_claims(b, specs, false);
    b.answer := jsonb_build_array('claimed', b.revision, b.answer);
  elsif b.held + places > b.limits[2] then
    b.answer := jsonb_build_array('lease-full', b.held, b.limits[2]);
  elsif not free and (call->3)::boolean and not @.are_free(specs) then
    b.answer := @.busy(b, specs);
  else
    b.revision := b.revision + 1;
    b := @.add_claims(b, specs, free);
    b.answer := jsonb_build_array('claimed', b.revision, b.answer);
  end if;
  return b;
end $body$;

create function @.check_parent(b @.batch, parent bigint) returns jsonb language plpgsql as $body$
declare
  depth integer;
begin
  with recursive above (id, parent) as (
    select l.id, l.parent from @.leases l where l.id = $2
    union all select l.id, l.parent from @.leases l join above a on l.id = a.parent
  )
  select count(*) into depth from above;
  if depth = 0 then return @.no_lease(parent); end if;
  if (select count(*) from @.leases l where l.parent = $2) >= b.limits[3] then
    return jsonb_build_array('children', b.limits[3]);
  end if;
  if depth >= b.limits[4] then return jsonb_build_array('deep', b.limits[4]); end if;
  return null;
end $body$;

-- grant, request, holder, ttl, grace, maxLife, parent, labels, ifFree, claims as above or null
create function @.do_grant(b @.batch, call jsonb) returns @.batch language plpgsql as $body$
declare
  specs jsonb := nullif(call->9, 'null');
  places integer := coalesce(jsonb_array_length(specs), 0);
  parent bigint := call->>6;
  ttl float8 := call->>3;
  grace float8 := call->>4;
  life float8 := b.now + (call->>5)::float8;
  free boolean := true;
begin
  if b.leases >= b.limits[5] then
    b.answer := jsonb_build_array('leases', b.limits[5]);
    return b;
  end if;
  if places > b.limits[2] then
    b.answer := jsonb_build_array('grant-full', b.limits[2]);
    return b;
  end if;
  for at in 0 .. places - 1 loop
    b := @.make_room(b, specs->at->>0);
    if b.answer is not null then return b; end if;
    free := free and b.free;
  end loop;
  if not free and (call->8)::boolean and not @.are_free(specs) then
    b.answer := @.busy(b, specs);
    return b;
  end if;
  -- Looked up last: preparing the keys may have ended the parent.
  if parent is not null then
    b.answer := @.check_parent(b, parent);
    if b.answer is not null then return b; end if;
  end if;
  b.revision := b.revision + 1;
  b.leases := b.leases + 1;
  b.next_due := least(b.next_due, b.now + ttl + grace, life);
  insert into @.leases (id, holder, ttl, grace, granted_at, end_of_life, look_at, parent, labels)
    values (b.revision, call->>2, ttl, grace, b.now, life, least(b.now + ttl + grace, life), parent,
      nullif(call->7, 'null'));
  insert into @.heartbeats (lease, renewed_at) values (b.revision, b.now);
  b := @.put_lease(b);
  b.lease := b.revision;
  b.holder := call->>2;
  b.held := 0;
  b.held_written := 0;
  if specs is null then
    b.answer := jsonb_build_array('granted', b.revision, 0, '[]'::jsonb);
  else
    b := @.add_claims(b, specs, free);
    b.answer := jsonb_build_array('granted', b.revision, b.revision, b.answer);
  end if;
  return b;
end $body$;

-- release, request, lease, token, [key, ...]
create function @.do_release(b @.batch, call jsonb) returns @.batch language plpgsql as $body$
begin
  b := @.take_claims(b, (call->2)::bigint, (call->3)::bigint, call->4);
  if b.answer is null then b.answer := jsonb_build_array('changed', b.revision); end if;
  return b;
end $body$;

-- update, request, lease, token, key, value
create function @.do_update(b @.batch, call jsonb) returns @.batch language plpgsql as $body$
declare
  owner bigint := (call->2)::bigint;
  held bigint := (call->3)::bigint;
begin
  with changed as (
    update @.claims c set value = call->>5 from @.leases l
    where c.key = call->>4 and c.token = held and c.lease = owner and l.id = owner
    returning c.*, l.holder
  )
  insert into @.events (revision, number, kind, key, token, lease, holder, standing, value, at)
  select b.revision + 1, b.events + 1, 1, g.key, g.token, g.lease, g.holder, g.standing, g.value,
    b.now from changed g;
  if not found then
    b.answer := @.no_claim(owner, held, array[call->>4]);
    return b;
  end if;
  b.revision := b.revision + 1;
  b.events := b.events + 1;
  b.answer := jsonb_build_array('changed', b.revision);
  return b;
end $body$;

-- revoke, request, what, lease or parent or prefix or key, token, by, why, after
create function @.do_revoke(b @.batch, call jsonb) returns @.batch language plpgsql as $body$
declare
  what text := call->>2;
  root bigint;
  ids bigint[];
  keys text[];
  tokens bigint[];
  after float8 := call->>7;
  ending jsonb := jsonb_strip_nulls(jsonb_build_object(
    'reason', case when after > 0 then 'broken' else 'revoked' end, 'by', call->5, 'why', call->6));
  page integer := b.limits[6];
  more boolean := false;
begin
  if what in ('lease', 'parent') then
    root := (call->3)::bigint;
    if not exists (select from @.leases l where l.id = root) then
      b.answer := @.no_lease(root);
      return b;
    end if;
    if what = 'lease' then
      ids := array[root];
    else
      ids := array(select l.id from @.leases l where l.parent = root order by l.id limit page + 1);
      more := cardinality(ids) > page;
      ids := ids[1:page];
    end if;
    if after > 0 then
      ids := array(select l.id from @.leases l where l.id = any (ids) and l.end_of_life > b.now + after);
    end if;
  else
    select array_agg(f.key), array_agg(f.token) into keys, tokens from (
      select c.key, c.token from @.claims c
      where case when what = 'prefix' then starts_with(c.key, call->>3)
          else c.key = call->>3 and (call->>4 is null or c.token = (call->>4)::bigint) end
        and c.key >= call->>3 and c.key <= @.last_of(call->>3)
      order by c.key, c.token limit page + 1
    ) as f;
    more := cardinality(keys) > page;
    keys := keys[1:page];
    tokens := tokens[1:page];
  end if;
  b.leases_ended := 0;
  b.claims_removed := 0;
  if coalesce(cardinality(ids), cardinality(keys), 0) > 0 then
    b.revision := b.revision + 1;
    if keys is not null then
      b := @.remove_claims(b, keys, tokens, ending);
    elsif after > 0 then
      b := @.cap_leases(b, ids, b.now + after, ending);
      b.leases_ended := cardinality(ids);
    else
      b := @.end_leases(b, ids, ending);
    end if;
  end if;
  b.answer := jsonb_build_array('revoked', b.revision, b.leases_ended, b.claims_removed, coalesce(more, false));
  return b;
end $body$;
`
