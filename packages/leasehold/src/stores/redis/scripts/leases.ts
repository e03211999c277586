/** Leases, their families and their ends; and how claims go, with or without them. */
export const LEASES = String.raw`
local LEASE = '^([^\31]*)\31([^\31]*)\31([^\31]*)\31([^\31]*)\31([^\31]*)\31([^\31]*)\31([^\31]*)\31([^\31]*)\31(.*)$'
local RELEASED, EXPIRED = 'released' .. GS .. GS, 'expired' .. GS .. GS
local AGED = 'expired' .. GS .. GS .. '=it reached the end of its maximum life'

local found = {}
local function leaseOf(id)
  local lease = found[id]
  if lease == nil then
    local saved = get(leases, id)
    lease = false
    if saved then
      local holder, ttl, grace, granted, eol, parent, depth, labels, capped = match(saved, LEASE)
      lease = { id = id, holder = holder, ttl = ttl, grace = grace, granted = granted,
        eol = number(eol), parent = parent, depth = tonumber(depth), labels = labels,
        capped = capped }
    end
    found[id] = lease
  end
  return lease
end
local function saveLease(lease)
  found[lease.id] = lease
  put(leases, lease.id, concat({ lease.holder, lease.ttl, lease.grace, lease.granted,
    text(lease.eol), lease.parent, lease.depth, lease.labels, lease.capped }, US))
end

-- A renewal of a lease whose life has an end is marked, so that others need not be looked up.
local function renewLease(lease)
  put(renewed, lease.id, lease.eol < HUGE and ('m' .. nowText) or nowText)
end
local function renewedAt(id)
  local at = get(renewed, id)
  return max(tonumber(sub(at, 1, 1) == 'm' and sub(at, 2) or at), since)
end
local function deadline(lease)
  return min(renewedAt(lease.id) + number(lease.ttl) + number(lease.grace), lease.eol)
end

local function byNumber(one, other)
  return tonumber(one) > tonumber(other)
end
local function childrenOf(id)
  local children = members('f:' .. id)
  sort(children, byNumber)
  return children
end
local function family(ids)
  local all = {}
  for _, first in ipairs(ids) do
    local at = #all + 1
    all[at] = first
    while at <= #all do
      for _, child in ipairs(childrenOf(all[at])) do all[#all + 1] = child end
      at = at + 1
    end
  end
  return all
end

-- A lease's claims as { token, key, name }, the latest first.
local function byToken(one, other)
  if one[1] == other[1] then return one[2] > other[2] end
  return tonumber(one[1]) > tonumber(other[1])
end
local function claimsOf(id)
  local own = {}
  for _, name in ipairs(members('c:' .. id)) do
    own[#own + 1] = { sub(name, 1, 16), sub(name, 18), name }
  end
  sort(own, byToken)
  return own
end

local function tell(kind, key, token, lease, standing, value, ending, held, before)
  eventCount = eventCount + 1
  events[eventCount] = revText .. US .. kind .. US .. key .. US .. token .. US .. lease.id .. US
    .. lease.holder .. US .. standing .. US .. value .. US .. nowText .. US .. ending .. US
    .. held .. US .. before
end

-- Takes a claim away. Those behind it come to hold by settle, when all that go have gone.
local function remove(key, token, saved, ending)
  local id, _, held, standing, multi, value = match(saved, CLAIM)
  local name, before = token .. ' ' .. key, ''
  if held ~= '' then
    before = recall(past, key) or ''
    put(past.young, key, revText)
  end
  tell('r', key, token, leaseOf(id), standing, value, ending, held, before)
  put(claims, name, false)
  exclude('c:' .. id, name)
  if multi ~= '' then regroup(token, -1, held == '' and -1 or 0) end
  cut(key, token)
  return id
end

-- Ends leases, parents before children, in this revision: all their claims go, then others hold.
local function finishLeases(ids, ending)
  local keys = {}
  for _, id in ipairs(ids) do
    note(id, concat({ 'g', revText, ending }, US))
    for _, claim in ipairs(claimsOf(id)) do
      keys[#keys + 1] = claim[2]
      remove(claim[2], claim[1], get(claims, claim[3]), ending)
    end
  end
  for at = #ids, 1, -1 do
    local lease = leaseOf(ids[at])
    put(ended.young, lease.id, ending)
    put(leases, lease.id, false)
    put(renewed, lease.id, false)
    due[lease.id], born[lease.id], found[lease.id] = false, false, false
    if lease.parent ~= '' then exclude('f:' .. lease.parent, lease.id) end
  end
  for _, key in ipairs(keys) do settle(key) end
  return #keys
end

local function expireLease(lease)
  local ending = EXPIRED
  if deadline(lease) == lease.eol then
    ending = lease.capped ~= '' and lease.capped or AGED
  end
  revise()
  finishLeases(family({ lease.id }), ending)
end

-- Whoever came to hold just now, and should have ended before, ends at once.
local function bury()
  while #heirs > 0 do
    local all = heirs
    heirs = {}
    for _, id in ipairs(all) do
      local lease = leaseOf(id)
      if lease and deadline(lease) <= now then expireLease(lease) end
    end
  end
end

-- Leases of which the look-out is a little early are looked at with those that are due.
local AHEAD = 10
local function sweep(most)
  writeDue()
  local list = call('ZRANGEBYSCORE', BASE .. 'due', '-inf', format('%.3f', now + AHEAD), 'LIMIT', 0, most)
  for _, id in ipairs(list) do
    local lease = leaseOf(id)
    if not lease then
      due[id] = false
    else
      local time = deadline(lease)
      if time <= now then expireLease(lease)
      else due[id] = time < HUGE and time or false end
    end
  end
  bury()
  writeDue()
  local first = call('ZRANGE', BASE .. 'due', 0, 0, 'WITHSCORES')
  nextDue = first[2] and tonumber(first[2]) or HUGE
  wrote = true
end
`
