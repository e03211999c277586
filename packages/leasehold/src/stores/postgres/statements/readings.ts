/**
 * What can be read. Each function sees one moment, because it is stable: all its queries share the
 * snapshot of the statement that calls it, and with it the revision.
 */
export const READINGS = `
-- Nothing that begins with this string comes after it.
create function @.last_of(prefix text) returns text language sql immutable as
  $$ select prefix || repeat(chr(1114111), 512) $$;

create function @.lease_json(l @.leases, restarted float8)
returns jsonb language plpgsql stable as $body$ begin return (
  select jsonb_build_array(l.id, l.holder, l.ttl, l.grace, l.labels, l.parent, l.granted_at,
    h.renewed_at, @.deadline(h.renewed_at, restarted, l.ttl, l.grace, l.end_of_life), l.end_of_life,
    l.claims, (select count(*) from @.leases c where c.parent = l.id))
  from @.heartbeats h where h.lease = l.id
); end $body$;

-- The first claims of a key, how many hold, and how many there are.
create function @.line_json(wanted text, most bigint, restarted float8)
returns jsonb language plpgsql stable as $body$ begin return (
  select jsonb_build_array(
    coalesce((select jsonb_agg(@.claim_json(f, restarted) order by f.token) from (
      select c.* from @.claims c where c.key = wanted order by c.token limit most) as f), '[]'),
    (select count(c.held_since) from @.claims c where c.key = wanted),
    (select count(*) from @.claims c where c.key = wanted))
); end $body$;

create function @.read_key(wanted text, most bigint)
returns jsonb language plpgsql stable @planned as $body$ begin return (
  select jsonb_build_array(m.revision, @.line_json(wanted, most, m.restarted_at)) from @.meta m where m.one
); end $body$;

create function @.read_prefix(prefix text, after text, most bigint, shown bigint)
returns jsonb language plpgsql stable @planned as $body$ begin return (
  select jsonb_build_array(m.revision, coalesce((
    select jsonb_agg(jsonb_build_array(k.key,
      @.line_json(k.key, least(k.holders + 1, shown), m.restarted_at)) order by k.key)
    from (
      select c.key, count(c.held_since) as holders from @.claims c
      where c.key >= prefix and c.key <= @.last_of(prefix) and starts_with(c.key, prefix)
        and (after is null or c.key > after)
      group by c.key order by c.key limit most + 1
    ) as k), '[]')) from @.meta m where m.one
); end $body$;

create function @.read_lease(wanted bigint, most bigint)
returns jsonb language plpgsql stable @planned as $body$ begin return (
  select jsonb_build_array(m.revision,
    (select @.lease_json(l, m.restarted_at) from @.leases l where l.id = wanted),
    (select e.ending from @.ended e where e.lease = wanted),
    coalesce((select jsonb_agg(@.claim_json(f, m.restarted_at)) from (
      select c.* from @.claims c where c.lease = wanted order by c.token desc, c.key limit most) as f), '[]'))
  from @.meta m where m.one
); end $body$;

create function @.read_leases(after bigint, most bigint)
returns jsonb language plpgsql stable @planned as $body$ begin return (
  select jsonb_build_array(m.revision, coalesce((
    select jsonb_agg(@.lease_json(f, m.restarted_at) order by f.id) from (
      select l.* from @.leases l where l.id > after order by l.id limit most + 1) as f), '[]'))
  from @.meta m where m.one
); end $body$;

create function @.read_history(wanted text, most bigint)
returns jsonb language plpgsql stable @planned as $body$ begin return (
  select jsonb_build_array(m.revision, coalesce((
    select jsonb_agg(jsonb_build_array(f.token, f.holder, f.lease, f.held_since, f.at, f.ending)
      order by f.revision desc, f.number desc) from (
      select e.* from @.events e where e.key = wanted and e.held_since is not null
      order by e.revision desc, e.number desc limit most) as f), '[]'))
  from @.meta m where m.one
); end $body$;

-- What to report to a lease's watch since a revision; without one, its current claims. If commits were
-- lost since, the watch must ask for its current claims.
create function @.lease_news(wanted bigint, since bigint, memory_from bigint, now float8)
returns jsonb language plpgsql stable as $body$
begin
  if since < memory_from then return '["forgotten"]'; end if;
  if not exists (select from @.leases l where l.id = wanted) then
    return jsonb_build_array('gone', (select e.ending from @.ended e where e.lease = wanted));
  end if;
  if since is null then
    return jsonb_build_array('standing', coalesce((
      select jsonb_agg(jsonb_build_array(c.key, c.token, c.holds)) from (
        select key, token, bool_and(held_since is not null) over (partition by token) as holds
        from @.claims where lease = wanted) as c), '[]'));
  end if;
  return (select jsonb_build_array('news', jsonb_agg(n.notice order by n.revision)) from (
    select distinct c.held_at as revision, jsonb_build_array('holds', c.held_at, c.token) as notice
    from @.claims c where c.lease = wanted and c.held_at > c.token and c.held_at > since
    union all
    select e.revision, jsonb_build_array('removed', e.revision, e.key, e.token, e.ending)
    from @.events e where e.lease = wanted and e.forced and e.revision > since
    union all
    select l.capped_at, jsonb_build_array('capped', l.capped_at, l.end_of_life - now, l.capped_by)
    from @.leases l where l.id = wanted and l.capped_at > since
  ) as n);
end $body$;

-- The events of a prefix after a revision: a part of them, but no revision is split.
create function @.prefix_news(prefix text, since bigint, m @.meta, most bigint) returns jsonb language plpgsql stable as $body$
declare
  cut bigint;
begin
  if since is null then return jsonb_build_array('watching', m.revision); end if;
  if since < m.complete_after or since > m.revision then
    return jsonb_build_array('compacted', m.complete_after);
  end if;
  select e.revision into cut from @.events e where e.revision > since and starts_with(e.key, prefix)
    order by e.revision, e.number offset most - 1 limit 1;
  return jsonb_build_array('events', coalesce(cut, m.revision), (
    select jsonb_agg(jsonb_build_array(e.revision, e.kind, e.key, e.token, e.lease, e.holder,
      e.standing, e.value, e.ending, e.at) order by e.revision, e.number)
    from @.events e where e.revision > since and e.revision <= coalesce(cut, m.revision)
      and starts_with(e.key, prefix)));
end $body$;

-- All that the watches of one process need: [[lease, since], ...], [[prefix, since], ...].
create function @.news(leases jsonb, prefixes jsonb, most bigint) returns jsonb language plpgsql stable @planned as $body$
declare
  m @.meta;
  now float8;
begin
  select * into strict m from @.meta where one;
  now := greatest(@.clock() + m.clock_offset, m.last_time);
  return jsonb_build_array(m.next_due - now, m.sweeper, m.revision,
    coalesce((select jsonb_agg(@.lease_news((w->>0)::bigint, (w->>1)::bigint, m.memory_from, now) order by place)
      from jsonb_array_elements(leases) with ordinality as asked (w, place)), '[]'),
    coalesce((select jsonb_agg(@.prefix_news(w->>0, (w->>1)::bigint, m, most) order by place)
      from jsonb_array_elements(prefixes) with ordinality as asked (w, place)), '[]'));
end $body$;
`
