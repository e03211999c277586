/** The other calls that change something, and the ends of leases. */
export const CHANGES = String.raw`
-- The scores of leases in two sorted sets; false removes one.
writeScores = function()
  for _, name in ipairs({ 'due', 'born' }) do
    local add, rem = {}, {}
    for member, score in pairs(S[name]) do
      if score then
        add[#add + 1] = format('%.3f', score)
        add[#add + 1] = member
      else
        rem[#rem + 1] = member
      end
    end
    S.each('ZADD', name, add)
    S.each('ZREM', name, rem)
    S[name] = {}
  end
  S.scored = false
end,
-- Forgets idle keys, oldest first, if there are too many.
forgetIdle = function()
  S.each('RPUSH', 'idle', S.idle)
  S.idleCount = S.idleCount + #S.idle
  local most = math.min(S.idleCount - S.limits.idle, #S.idle + 64)
  S.idle = {}
  if most <= 0 then return end
  local rem = {}
  for _, key in ipairs(call('LPOP', S.base .. 'idle', most) or {}) do
    local queue = S.get('lines', key)
    S.idleCount = S.idleCount - 1
    if sub(queue, 1, 1) == '-' then
      rem[#rem + 1] = key
      S.set('lines', key, false)
    else
      S.set('lines', key, sub(queue, 1, 1) .. '.' .. sub(queue, 3))
    end
  end
  S.each('ZREM', 'names', rem)
end,
lookAt = function(id, time)
  S.due[id] = time
  S.scored = true
  if time < S.nextDue then S.nextDue = time end
end,

members = function(name)
  local gone, found = {}, {}
  for _, member in ipairs(S.rems[name] or {}) do gone[member] = true end
  for _, all in ipairs({ call('SMEMBERS', S.base .. name), S.adds[name] or {} }) do
    for _, member in ipairs(all) do
      if not gone[member] then found[#found + 1] = member end
    end
  end
  return found
end,
childrenOf = function(id)
  local children = S.more.members('f:' .. id)
  table.sort(children, function(one, other) return tonumber(one) > tonumber(other) end)
  return children
end,
family = function(ids)
  local all = {}
  for _, first in ipairs(ids) do
    local at = #all + 1
    all[at] = first
    while at <= #all do
      for _, child in ipairs(S.more.childrenOf(all[at])) do all[#all + 1] = child end
      at = at + 1
    end
  end
  return all
end,
-- A lease's claims as { token, key }, latest first.
claimsOf = function(id)
  local own = {}
  for _, name in ipairs(S.more.members('c:' .. id)) do
    own[#own + 1] = { sub(name, 1, 16), sub(name, 18), tonumber(sub(name, 1, 16)) }
  end
  table.sort(own, function(one, other)
    if one[3] == other[3] then return one[2] > other[2] end
    return one[3] > other[3]
  end)
  return own
end,

-- Ends leases, parents before children, in this revision: removes all their claims, then promotes.
finishLeases = function(ids, ending)
  local keys = {}
  for _, id in ipairs(ids) do
    S.note(id, 'g\31' .. S.revText .. '\31' .. ending)
    for _, claim in ipairs(S.more.claimsOf(id)) do
      local token, key = claim[1], claim[2]
      keys[#keys + 1] = key
      S.remove(key, token, S.claimAt(key, token), ending)
    end
  end
  for at = #ids, 1, -1 do
    local lease = S.leaseOf(ids[at])
    S.set('ended1', lease.id, ending)
    S.set('leases', lease.id, false)
    S.set('renewed', lease.id, false)
    S.due[lease.id], S.born[lease.id], S.found[lease.id] = false, false, false
    if lease.parent ~= '' then S.exclude('f:' .. lease.parent, lease.id) end
  end
  S.scored = true
  for _, key in ipairs(keys) do S.promote(key) end
  return #keys
end,

expireLease = function(lease)
  local ending = 'expired\29\29'
  if S.deadline(lease) == lease.eol then
    ending = lease.capped ~= '' and lease.capped
      or 'expired\29\29=it reached the end of its maximum life'
  end
  S.revise()
  S.more.finishLeases(S.more.family({ lease.id }), ending)
end,

-- Checks the leases that are due, or will be in a moment.
sweep = function(most)
  S.more.writeScores()
  local list = call('ZRANGEBYSCORE', S.base .. 'due', '-inf', format('%.3f', S.now + 10), 'LIMIT', 0, most)
  for _, id in ipairs(list) do
    local lease = S.leaseOf(id)
    local time = lease and S.deadline(lease)
    if not lease then S.due[id] = false
    elseif time <= S.now then S.more.expireLease(lease)
    else S.due[id] = time < S.HUGE and time or false end
  end
  S.endOverdue()
  S.more.writeScores()
  local first = call('ZRANGE', S.base .. 'due', 0, 0, 'WITHSCORES')
  S.nextDue = first[2] and tonumber(first[2]) or S.HUGE
  S.wrote = true
end,

claimText = function(key, token)
  local claim = S.claimAt(key, token)
  local lease, held = S.leaseOf(sub(claim, 1, 16)), sub(claim, 34, 50)
  return concat({ key, token, lease.id, lease.holder, sub(claim, 51, 58), sub(claim, 60),
    sub(claim, 17, 33), held == S.NEVER and '' or held, S.text(S.deadline(lease)) }, '\31')
end,
-- How many claims are before the end of a queue, minus a number, and the first of them.
ahead = function(key, without)
  local queue = S.queueOf(key)
  local _, count = S.counts(queue)
  return (count - without) .. '\31' .. S.more.claimText(key, (S.tokenAt(queue, 1)))
end,
busy = function(fields, first)
  local ahead = ''
  for at = first, #fields, 3 do
    if not S.isFree(fields[at], fields[at + 1]) then
      ahead = ahead .. '\30' .. S.more.ahead(fields[at], 0)
    end
  end
  if ahead ~= '' then return 'B' .. S.revText .. ahead end
end,

saveLease = function(lease)
  S.found[lease.id] = lease
  S.set('leases', lease.id, concat({ lease.holder, lease.ttl, lease.grace, lease.granted,
    S.text(lease.eol - S.away), lease.parent, lease.depth, lease.labels, lease.capped }, '\31'))
end,
checkParent = function(id)
  local parent, limits = S.leaseOf(id), S.limits
  if not parent then return S.noLease(id) end
  if S.size('f:' .. id) >= limits.childrenPerLease then
    return S.refuse('many-children', id, limits.childrenPerLease)
  end
  if parent.depth >= limits.leaseDepth then return S.refuse('too-deep', id, limits.leaseDepth) end
end,

-- Fields: request, then as named, then the claims.
grant = function(fields)
  local _, holder, ttl, grace, life, parent, labels, ifFree = unpack(fields, 1, 8)
  local limits, count = S.limits, (#fields - 8) / 3
  if call('HLEN', S.base .. 'leases') >= limits.leases then
    return S.refuse('store-full', limits.leases)
  end
  if count > limits.claimsPerLease then
    return S.refuse('too-many-claims', count, limits.claimsPerLease)
  end
  local refusal = S.prepare(fields, 9)
  if not refusal and ifFree == '1' then refusal = S.more.busy(fields, 9) end
  if not refusal and parent ~= '' then refusal = S.more.checkParent(parent) end
  if refusal then return refusal end
  S.revise()
  local lease = { id = S.revText, holder = holder, ttl = ttl, grace = grace, granted = S.nowText,
    eol = S.now + S.number(life), parent = parent, labels = labels, capped = '',
    depth = parent == '' and 1 or S.leaseOf(parent).depth + 1 }
  S.more.saveLease(lease)
  S.renewLease(lease)
  S.born[lease.id], S.scored = S.rev, true
  if parent ~= '' then S.include('f:' .. parent, lease.id) end
  local time = S.deadline(lease)
  if time < S.HUGE then S.more.lookAt(lease.id, time) end
  if count == 0 then return 'E' .. S.revText end
  local ahead = S.addClaims(lease, fields, 9)
  return ahead and ('H' .. S.revText .. ahead) or ('G' .. S.revText)
end,

update = function(fields)
  local _, id, token, key, value = unpack(fields, 1, 5)
  local claim, refusal = S.findClaim(id, key, token)
  if not claim then return refusal end
  S.revise()
  S.putClaim(key, token, sub(claim, 1, 59) .. value)
  S.addEvent('u', key, token, S.leaseOf(id), sub(claim, 51, 58), value, '', '', '')
  return 'R' .. S.revText
end,
`
