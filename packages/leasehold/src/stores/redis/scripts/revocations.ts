/** Revocations. */
export const REVOCATIONS = String.raw`
revoked = function(leases, claims, more)
  return concat({ 'V' .. S.revText, leases, claims, more and '1' or '' }, '\31')
end,

-- Gives leases a final deadline that no renewal can extend.
cap = function(ids, time, ending)
  local count = 0
  for _, id in ipairs(ids) do
    local lease = S.leaseOf(id)
    if lease.eol > time then
      if count == 0 then S.revise() end
      count = count + 1
      lease.eol, lease.capped = time, ending
      S.more.saveLease(lease)
      S.set('renewed', id, 'm' .. S.text(S.renewedAt(id)))
      S.more.lookAt(id, S.deadline(lease))
      S.note(id, concat({ 'c', S.revText, S.text(time - S.now), ending }, '\31'))
    end
  end
  return count
end,

revokeLeases = function(kind, id, after, input)
  if not S.leaseOf(id) then return S.noLease(id) end
  local ids, more = { id }, false
  if kind == 'parent' then
    ids = S.more.childrenOf(id)
    more = #ids > S.limits.page
    while #ids > S.limits.page do ids[#ids] = nil end
  end
  if after > 0 then
    return S.more.revoked(S.more.cap(ids, S.now + after, 'broken' .. input), 0, more)
  end
  if #ids == 0 then return S.more.revoked(0, 0, more) end
  S.revise()
  local all = S.more.family(ids)
  local removed = S.more.finishLeases(all, 'revoked' .. input)
  return S.more.revoked(#all, removed, more)
end,

-- Adds the targeted claims of a key, up to one more than may be removed at once.
collect = function(key, victims)
  local queue = S.queueOf(key)
  if not queue then return end
  local _, count = S.counts(queue)
  for at = 1, count do
    if #victims > S.limits.page then return end
    victims[#victims + 1] = { key, (S.tokenAt(queue, at)) }
  end
end,
meant = function(kind, target, token)
  local victims = {}
  if kind == 'key' then
    S.more.collect(target, victims)
  elseif kind == 'claim' then
    if S.claimAt(target, token) then victims[1] = { target, token } end
  else
    S.write()
    local first = '[' .. target
    repeat
      local names = call('ZRANGEBYLEX', S.base .. 'names', first, '(' .. target .. '\255', 'LIMIT', 0, 100)
      for _, key in ipairs(names) do S.more.collect(key, victims) end
      first = names[#names] and ('(' .. names[#names])
    until not first or #victims > S.limits.page
  end
  return victims
end,

revokeClaims = function(kind, target, token, ending)
  local victims = S.more.meant(kind, target, token)
  local more = #victims > S.limits.page
  if more then victims[#victims] = nil end
  if #victims == 0 then return S.more.revoked(0, 0, more) end
  S.revise()
  for _, victim in ipairs(victims) do
    local key, its = victim[1], victim[2]
    local id = S.remove(key, its, S.claimAt(key, its), ending)
    S.note(id, concat({ 'r', S.revText, key, its, ending }, '\31'))
  end
  local done = {}
  for _, victim in ipairs(victims) do
    if not done[victim[1]] then
      done[victim[1]] = true
      S.promote(victim[1])
    end
  end
  return S.more.revoked(0, #victims, more)
end,

revoke = function(fields)
  local _, kind, target, token, after, by, why = unpack(fields, 1, 7)
  local input = '\29' .. by .. '\29' .. why
  if kind == 'lease' or kind == 'parent' then
    return S.more.revokeLeases(kind, target, tonumber(after), input)
  end
  return S.more.revokeClaims(kind, target, token, 'revoked' .. input)
end,
`
