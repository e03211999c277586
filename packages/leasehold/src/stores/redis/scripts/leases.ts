/** Leases, and how a claim goes. */
export const LEASES = String.raw`
leaseOf = function(id)
  local lease = S.found[id]
  if lease == nil then
    local saved = S.get('leases', id)
    lease = false
    if saved then
      local holder, ttl, grace, granted, eol, parent, depth, labels, capped = match(saved, S.LEASE)
      lease = { id = id, holder = holder, ttl = ttl, grace = grace, granted = granted,
        eol = S.number(eol) + S.away, parent = parent, depth = tonumber(depth), labels = labels,
        capped = capped }
    end
    S.found[id] = lease
  end
  return lease
end,

-- A renewal of a lease whose life has an end is marked, so that others need not be looked up.
renewLease = function(lease)
  S.set('renewed', lease.id, lease.eol < S.HUGE and ('m' .. S.nowText) or S.nowText)
end,
renewedAt = function(id)
  local at = S.get('renewed', id)
  return math.max(tonumber(sub(at, 1, 1) == 'm' and sub(at, 2) or at), S.since)
end,
deadline = function(lease)
  return math.min(S.renewedAt(lease.id) + S.number(lease.ttl) + S.number(lease.grace), lease.eol)
end,

tell = function(kind, key, token, lease, standing, value, ending, held, before)
  local count = S.eventCount + 1
  S.eventCount = count
  S.events[count] = S.revText .. '\31' .. kind .. '\31' .. key .. '\31' .. token .. '\31' .. lease.id
    .. '\31' .. lease.holder .. '\31' .. standing .. '\31' .. value .. '\31' .. S.nowText .. '\31'
    .. ending .. '\31' .. held .. '\31' .. before
end,

-- Takes a claim away. Those behind it come to hold by settle, when all that go have gone.
remove = function(key, token, claim, ending)
  local id, held, multi = sub(claim, 1, 16), sub(claim, 34, 50), sub(claim, 59, 59)
  local hasHeld, before = held ~= S.NEVER, ''
  if hasHeld then before = sub(S.get('lines', key), 3, 18) else held = '' end
  S.tell('r', key, token, S.leaseOf(id), sub(claim, 51, 58), sub(claim, 60), ending, held, before)
  S.exclude('c:' .. id, token .. ' ' .. key)
  if multi ~= '.' then S.regroup(token, -1, hasHeld and 0 or -1) end
  S.cut(key, token, hasHeld)
  return id
end,

-- Whoever came to hold just now, and should have ended before, ends at once.
bury = function()
  while #S.heirs > 0 do
    local all = S.heirs
    S.heirs = {}
    for _, id in ipairs(all) do
      local lease = S.leaseOf(id)
      if lease and S.deadline(lease) <= S.now then S.more.expireLease(lease) end
    end
  end
end,
`
