/** Leases, and how a claim is removed. */
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

-- A renewal of a lease with a finite life is marked, so that others need not be looked up.
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

-- Kinds: c claimed, C claimed and held at once, h held, u updated, r removed.
addEvent = function(kind, key, token, lease, mode, value, ending, held, before)
  local count = S.eventCount + 1
  S.eventCount = count
  S.events[count] = S.revText .. '\31' .. kind .. '\31' .. key .. '\31' .. token .. '\31' .. lease.id
    .. '\31' .. lease.holder .. '\31' .. mode .. '\31' .. value .. '\31' .. S.nowText .. '\31'
    .. ending .. '\31' .. held .. '\31' .. before
end,

-- Removes a claim. promote lets the claims behind it hold, after all removals of the change.
remove = function(key, token, claim, ending)
  local id, held, multi = sub(claim, 1, 16), sub(claim, 34, 50), sub(claim, 59, 59)
  local hasHeld, before = held ~= S.NEVER, ''
  if hasHeld then before = sub(S.get('lines', key), 3, 18) else held = '' end
  S.addEvent('r', key, token, S.leaseOf(id), sub(claim, 51, 58), sub(claim, 60), ending, held, before)
  S.exclude('c:' .. id, token .. ' ' .. key)
  if multi ~= '.' then S.regroup(token, -1, hasHeld and 0 or -1) end
  S.cut(key, token, hasHeld)
  return id
end,

-- Ends a lease at once that got a claim just now but was already due.
endOverdue = function()
  while #S.promoted > 0 do
    local all = S.promoted
    S.promoted = {}
    for _, id in ipairs(all) do
      local lease = S.leaseOf(id)
      if lease and S.deadline(lease) <= S.now then S.more.expireLease(lease) end
    end
  end
end,
`
