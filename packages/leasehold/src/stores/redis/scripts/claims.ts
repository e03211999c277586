/**
 * Claims, releases and renewals: nearly all calls. Each gets its fields, checks everything before it
 * changes anything, and returns a string; see `answers.ts`. Claims are the last fields of a call,
 * three each: key, mode, value.
 */
export const CLAIMS = String.raw`
-- The fields of a call. A claim on one key and its release, the most common calls, have forms in which
-- most fields have fixed positions.
fieldsOf = function(input, kind)
  if kind == 'C' then
    local one = find(input, '\31', 27, true)
    local two = find(input, '\31', one + 1, true)
    return { sub(input, 27, one - 1), sub(input, 3, 18), sub(input, 2, 2), sub(input, one + 1, two - 1),
      sub(input, 19, 26), sub(input, two + 1) }
  elseif kind == 'R' then
    local one = find(input, '\31', 34, true)
    return { sub(input, 34, one - 1), sub(input, 2, 17), sub(input, 18, 33), sub(input, one + 1) }
  end
  local fields, first = {}, 3
  repeat
    local last = find(input, '\31', first, true)
    fields[#fields + 1] = sub(input, first, (last or 0) - 1)
    first = (last or 0) + 1
  until not last
  return fields
end,
refuse = function(...)
  return concat({ 'X', ... }, '\31')
end,
noLease = function(id)
  local ending = S.endOf(id)
  if ending then return S.refuse('lease-ended', id, ending) end
  return S.refuse('lease-not-found', id)
end,

-- Ends overdue leases at the front of these keys, and checks that their queues have room.
prepare = function(fields, first)
  for at = first, #fields, 3 do
    local key = fields[at]
    local queue = S.queueOf(key)
    while queue do
      local lease = S.leaseOf(sub(S.claimAt(key, (S.tokenAt(queue, 1))), 1, 16))
      if S.deadline(lease) > S.now then break end
      S.more.expireLease(lease)
      S.endOverdue()
      queue = S.queueOf(key)
    end
    if queue then
      local _, many = S.counts(queue)
      if many >= S.limits.claimsPerKey then return S.refuse('key-full', key, many) end
    end
  end
end,

-- Adds claims with this revision. Returns the claims before those that wait.
addClaims = function(lease, fields, first)
  local token, multi, ahead = S.revText, fields[first + 3] and '+' or '.', nil
  local start = lease.id .. S.nowText
  for at = first, #fields, 3 do
    local key, mode, value = fields[at], fields[at + 1], fields[at + 2]
    local rest = mode .. multi .. value
    local holds = S.append(key, token, mode, start, rest)
    S.include('c:' .. lease.id, token .. ' ' .. key)
    if multi ~= '.' then S.regroup(token, 1, holds and 0 or 1) end
    S.addEvent(holds and 'C' or 'c', key, token, lease, mode, value, '', '', '')
    if not holds then ahead = (ahead or '') .. '\30' .. S.more.ahead(key, 1) end
  end
  return ahead
end,

-- Fields: request, lease, a condition; then the claims. The condition is 1 if they must be free, or = and
-- the token that they replace.
claim = function(fields)
  local refusal = S.prepare(fields, 4)
  if refusal then return refusal end
  local id = fields[2]
  local lease = S.leaseOf(id)
  if not lease then return S.noLease(id) end
  local has, replaced = S.size('c:' .. id), match(fields[3], '^=(.*)$')
  if replaced then
    local keys = {}
    for at = 4, #fields, 3 do keys[#keys + 1] = fields[at] end
    refusal = S.removeOwn(id, replaced, keys, 1)
    if refusal then return refusal end
  elseif has + (#fields - 3) / 3 > S.limits.claimsPerLease then
    return S.refuse('lease-full', id, has, S.limits.claimsPerLease)
  else
    local answer = fields[3] == '1' and S.more.busy(fields, 4)
    if answer then return answer end
    S.revise()
  end
  local ahead = S.addClaims(lease, fields, 4)
  return ahead and ('W' .. S.revText .. ahead) or ('C' .. S.revText)
end,

-- The claim of this lease with this token on this key, or why there is none.
findClaim = function(id, key, token)
  local claim = S.claimAt(key, token)
  if claim and sub(claim, 1, 16) == id then return claim end
  if not S.leaseOf(id) then return false, S.noLease(id) end
  local queue = S.queueOf(key)
  return false, S.refuse('claim-not-found', id, token, key, queue and S.tokenAt(queue, 1) or '')
end,

-- Removes the claims of this lease with this token from the keys, in a new revision, or says why not.
removeOwn = function(id, token, keys, first)
  local found = {}
  for at = first, #keys do
    local claim, refusal = S.findClaim(id, keys[at], token)
    if not claim then return refusal end
    found[at] = claim
  end
  S.revise()
  for at = first, #keys do S.remove(keys[at], token, found[at], 'released\29\29') end
  for at = first, #keys do S.promote(keys[at]) end
end,

-- Fields: request, lease, token; then the keys.
release = function(fields)
  return S.removeOwn(fields[2], fields[3], fields, 4) or ('R' .. S.revText)
end,

renew = function(ids)
  local lost, capped = {}, {}
  for place, id in ipairs(ids) do
    local before = S.get('renewed', id)
    if not before then
      lost[#lost + 1] = place .. '\31' .. (S.endOf(id) or '')
    elseif sub(before, 1, 1) ~= 'm' then
      S.set('renewed', id, S.nowText)
    else
      local lease = S.leaseOf(id)
      S.renewLease(lease)
      if S.deadline(lease) == lease.eol then
        capped[#capped + 1] = place .. '\31' .. S.text(math.max(0, lease.eol - S.now)) .. '\31'
          .. lease.capped
      end
    end
  end
  if #lost == 0 and #capped == 0 then return 'N' end
  local losses = #lost
  for _, each in ipairs(capped) do lost[#lost + 1] = each end
  return 'N' .. losses .. '\30' .. concat(lost, '\30')
end,
`
