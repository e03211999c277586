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
local FORMAT = '1'
local PER_SECOND = 1048576
local CATCH_UP = 0.0005

local function begin()
  local saved = call('GET', KEYS[1])
  local time = call('TIME')
  local wall = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
  local me = match(call('INFO', 'server'), 'run_id:(%w+)')
  local lowest = max(tonumber(time[1]) * PER_SECOND, 1e15)
  if not saved then
    uid, run, rev, last, raw = ARGV[1], me, lowest, wall, wall
    since, logged, complete, mid, gen, nextDue = 0, rev, rev, rev, 0, HUGE
    wrote, now = true, wall
  else
    local r, l, w, s, lo, co, mi, ge, ne
    version, uid, run, r, l, w, s, lo, co, mi, ge, ne =
      match(saved, '^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+)$')
    if version ~= FORMAT then return 'FORMAT ' .. tostring(version or saved) end
    rev, last, raw, since = tonumber(r), tonumber(l), tonumber(w), tonumber(s)
    logged, complete, mid, gen = tonumber(lo), tonumber(co), tonumber(mi), tonumber(ge)
    nextDue = ne == '-' and HUGE or tonumber(ne)
    if run ~= me then
      run, raw, now, since = me, wall, last, last
      rev = max(rev + 1, lowest)
      logged, complete, mid, wrote = rev, rev, rev, true
    else
      local passed = max(wall - raw, 0)
      local apart = wall - (last + passed)
      local most = passed * CATCH_UP
      now = last + passed + max(-most, min(apart, most))
    end
    raw = wall
  end
  nowText = format('%.3f', now)
  revText = format('%.0f', rev)
end

local function finish()
  write()
  if wrote then
    call('SET', KEYS[1], concat({ FORMAT, uid, run, format('%.0f', rev), nowText,
      format('%.3f', raw), format('%.3f', since), format('%.0f', logged),
      format('%.0f', complete), format('%.0f', mid), format('%.0f', gen),
      nextDue == HUGE and '-' or format('%.3f', nextDue) }, ' '))
  end
end
`
