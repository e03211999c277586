/**
 * How a run begins and ends: it checks the identity of the data, the time, and whether this is still
 * the Redis that wrote the data.
 *
 * **Time.** Redis knows only the wall clock of its machine. The store's own clock is stored in `meta`.
 * It advances by what the wall clock has advanced, and never goes back. If the wall clock is set
 * back, the store's clock is ahead of it and is slowed by one part in two thousand, far less than a
 * holder allows for.
 *
 * **The other form.** `redisLog` has its stream in `entries`. A namespace belongs to the form that
 * was there first.
 *
 * **Another Redis.** Each Redis process has its own run id. If it is not the one that wrote last,
 * Redis was restarted, or a replica has taken its place, and recent answers may have been lost. So
 * every lease gets its full ttl again, the time in between does not count towards any lease's life
 * (it is added to `away`), and every watch must read again. Revisions continue above any that can
 * have been used: from the wall clock, in which a second is 2^20 revisions. No Redis makes a
 * revision in every microsecond of its life, so a later start is always higher, even if everything
 * was lost.
 */
export const BEGIN = `
begin = function()
  local saved = call('GET', KEYS[1])
  local time = call('TIME')
  local wall = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
  local info = call('INFO', 'server')
  local _, at = string.find(info, 'run_id:', 1, true)
  local me = sub(info, at + 1, at + 40)
  local lowest = math.max(math.floor(wall * 1048.576), 1e15)
  S.wall = wall
  if not saved then
    local log = S.base .. 'entries'
    if call('EXISTS', log, log .. ':epoch') > 0 then
      return 'FORM the namespace ' .. sub(S.base, 2, -3) .. ' holds a log of redisLog, form=log: ' .. log
    end
    S.uid, S.run, S.rev, S.now = ARGV[1] .. ':' .. ARGV[2], me, lowest, wall
    S.since, S.away, S.gen, S.idleCount, S.nextDue, S.wrote = 0, 0, 0, 0, S.HUGE, true
    S.logged, S.complete, S.mid = format('%d', lowest), lowest, lowest
  else
    local meta = cmsgpack.unpack(saved)
    if type(meta) ~= 'table' or meta[1] ~= 1 then return 'FORMAT ' .. saved end
    local run, last, raw
    _, S.uid, run, S.rev, last, raw, S.since, S.away, S.logged, S.complete, S.mid, S.gen,
      S.idleCount, S.nextDue = unpack(meta)
    S.run, S.nextDue = run, S.nextDue or S.HUGE
    if run ~= me then
      S.now = math.max(last, wall)
      S.run, S.since, S.away, S.wrote = me, S.now, S.away + S.now - last, true
      S.rev = math.max(S.rev + 1, lowest)
      S.logged, S.complete, S.mid = format('%d', S.rev), S.rev, S.rev
    else
      local passed = math.max(wall - raw, 0)
      S.now = last + passed - math.max(0, math.min(last + passed - wall, passed * 0.0005))
    end
  end
  S.nowText = format('%.3f', S.now)
  S.revText = format('%d', S.rev)
end,

finish = function()
  S.write()
  if S.wrote then
    call('SET', KEYS[1], cmsgpack.pack({ 1, S.uid, S.run, S.rev, S.now, S.wall, S.since, S.away,
      S.logged, S.complete, S.mid, S.gen, S.idleCount, S.nextDue < S.HUGE and S.nextDue }))
  end
end,
`
