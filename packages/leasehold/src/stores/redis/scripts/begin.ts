/**
 * How a run begins and ends: whose data this is, what time it is, and whether this is still the
 * Redis that wrote it.
 *
 * **Time.** Redis knows only the wall clock of its machine. The store's own clock is kept in
 * `meta` and moved on by what that clock has moved: never back, and not at all while Redis was
 * away. Where the two are apart it catches up (or waits) by one part in two thousand, far less
 * than a holder allows for.
 *
 * **Another Redis.** Each process of Redis has a run id of its own. Where it is not the one that
 * wrote last, Redis was restarted, or a replica has taken its place, and what was answered lately
 * may have been lost. So every lease gets its full ttl again, whoever watches must read again, and
 * revisions go on above any that can have been given: the seconds of the wall clock times 2^20. No
 * Redis makes a million revisions in each second of its life, so whoever begins later begins
 * higher, whatever has been lost: all of it, even.
 */
export const BEGIN = `
begin = function()
  local saved = call('GET', KEYS[1])
  local time = call('TIME')
  local seconds = tonumber(time[1])
  local wall = seconds * 1000 + tonumber(time[2]) / 1000
  local me = match(call('INFO', 'server'), 'run_id:(%w+)')
  local lowest = math.max(seconds * 1048576, 1e15)
  S.wall = wall
  if not saved then
    S.uid, S.run, S.rev, S.now = ARGV[1], me, lowest, wall
    S.since, S.gen, S.idleCount, S.nextDue, S.wrote = 0, 0, 0, S.HUGE, true
    S.logged, S.complete, S.mid = format('%d', lowest), lowest, lowest
  else
    local version, uid, run, rev, last, raw, since, logged, complete, mid, gen, idle, due =
      match(saved, '^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+)$')
    if version ~= '1' then return 'FORMAT ' .. tostring(version or saved) end
    S.uid, S.run, S.since, S.logged = uid, run, tonumber(since), logged
    S.rev, S.complete, S.mid, S.gen = tonumber(rev), tonumber(complete), tonumber(mid), tonumber(gen)
    S.idleCount, S.nextDue = tonumber(idle), due == '-' and S.HUGE or tonumber(due)
    last = tonumber(last)
    if run ~= me then
      S.run, S.now, S.since, S.wrote = me, last, last, true
      S.rev = math.max(S.rev + 1, lowest)
      S.logged, S.complete, S.mid = format('%d', S.rev), S.rev, S.rev
    else
      local passed = math.max(wall - tonumber(raw), 0)
      local most = passed * 0.0005
      S.now = last + passed + math.max(-most, math.min(wall - last - passed, most))
    end
  end
  S.nowText = format('%.3f', S.now)
  S.revText = format('%d', S.rev)
end,

finish = function()
  S.write()
  if S.wrote then
    call('SET', KEYS[1], format('1 %s %s %d %s %.3f %.3f %s %d %d %d %d %s', S.uid, S.run, S.rev,
      S.nowText, S.wall, S.since, S.logged, S.complete, S.mid, S.gen,
      S.idleCount, S.nextDue == S.HUGE and '-' or format('%.3f', S.nextDue)))
  end
end,
`
