/**
 * The calls that change something. Each reads its arguments where the last one ended, checks all
 * before it changes anything, and answers with a text; `answers.ts` knows what they mean.
 */
export const CHANGES = String.raw`
local position = 3
local function argument()
  position = position + 1
  return ARGV[position]
end

local function refuse(...)
  return concat({ 'X', ... }, US)
end
local function noLease(id)
  local ending = recall(ended, id)
  if ending then return refuse('lease-ended', id, ending) end
  return refuse('lease-not-found', id)
end

local function claimText(key, token, saved)
  local id, made, held, standing, _, value = match(saved, CLAIM)
  local lease = leaseOf(id)
  return concat({ key, token, id, lease.holder, standing, value, made, held,
    text(deadline(lease)) }, US)
end
local function firstClaim(key)
  local token = tokenAt(get(lines, key), 1)
  return claimText(key, token, get(claims, token .. ' ' .. key))
end

-- Claims are three arguments each, from first on: key, standing, value.
local function prepare(first, count)
  for at = first, first + 3 * (count - 1), 3 do
    local key = ARGV[at]
    local line = get(lines, key)
    while line do
      local token = tokenAt(line, 1)
      local lease = leaseOf(match(get(claims, token .. ' ' .. key), '^[^\31]*'))
      if deadline(lease) > now then break end
      expireLease(lease)
      bury()
      line = get(lines, key)
    end
    if line then
      local _, many = counts(line)
      if many >= LIMITS.claimsPerKey then return refuse('key-full', key, many) end
    end
  end
end

local function busy(first, count)
  local ahead = {}
  for at = first, first + 3 * (count - 1), 3 do
    local key = ARGV[at]
    if not isFree(key, ARGV[at + 1]) then
      local _, many = counts(get(lines, key))
      ahead[#ahead + 1] = many .. US .. firstClaim(key)
    end
  end
  if #ahead > 0 then return 'B' .. revText .. RS .. concat(ahead, RS) end
end

-- Adds claims under this revision; answers with what stands before those that wait.
local function addClaims(lease, first, count)
  local token, multi, ahead = revText, count > 1 and '1' or '', nil
  for at = first, first + 3 * (count - 1), 3 do
    local key, standing, value = ARGV[at], ARGV[at + 1], ARGV[at + 2]
    local holds = append(key, token, standing)
    local name = token .. ' ' .. key
    put(claims, name, lease.id .. US .. nowText .. US .. (holds and nowText or '') .. US
      .. standing .. US .. multi .. US .. value)
    include('c:' .. lease.id, name)
    if multi ~= '' then regroup(token, 1, holds and 0 or 1) end
    tell('c', key, token, lease, standing, value, '', '', '')
    if not holds then
      local _, many = counts(get(lines, key))
      ahead = ahead or {}
      ahead[#ahead + 1] = (many - 1) .. US .. firstClaim(key)
    end
  end
  return ahead and (RS .. concat(ahead, RS))
end

local function claim()
  local id, ifFree, count = ARGV[position + 1], ARGV[position + 2], tonumber(ARGV[position + 3])
  local first = position + 4
  position = position + 3 + 3 * count
  local refusal = prepare(first, count)
  if refusal then return refusal end
  local lease = leaseOf(id)
  if not lease then return noLease(id) end
  local has = size('c:' .. id)
  if has + count > LIMITS.claimsPerLease then return refuse('lease-full', id, has, LIMITS.claimsPerLease) end
  if ifFree == '1' then
    local answer = busy(first, count)
    if answer then return answer end
  end
  revise()
  local ahead = addClaims(lease, first, count)
  return ahead and ('W' .. revText .. ahead) or ('C' .. revText)
end

local function checkParent(id)
  local parent = leaseOf(id)
  if not parent then return noLease(id) end
  if size('f:' .. id) >= LIMITS.childrenPerLease then return refuse('many-children', id, LIMITS.childrenPerLease) end
  if parent.depth >= LIMITS.leaseDepth then return refuse('too-deep', id, LIMITS.leaseDepth) end
end

local function grant()
  local holder, ttl, grace, life = argument(), argument(), argument(), argument()
  local parent, labels, ifFree, count = argument(), argument(), argument(), tonumber(argument())
  local first = position + 1
  position = position + 3 * count
  if call('HLEN', leases.key) >= LIMITS.leases then return refuse('store-full', LIMITS.leases) end
  if count > LIMITS.claimsPerLease then return refuse('too-many-claims', count, LIMITS.claimsPerLease) end
  local refusal = prepare(first, count)
  if not refusal and ifFree == '1' then refusal = busy(first, count) end
  if not refusal and parent ~= '' then refusal = checkParent(parent) end
  if refusal then return refusal end
  revise()
  local lease = { id = revText, holder = holder, ttl = ttl, grace = grace, granted = nowText,
    eol = now + number(life), parent = parent, labels = labels, capped = '',
    depth = parent == '' and 1 or leaseOf(parent).depth + 1 }
  saveLease(lease)
  renewLease(lease)
  born[lease.id] = rev
  if parent ~= '' then include('f:' .. parent, lease.id) end
  local time = deadline(lease)
  if time < HUGE then lookAt(lease.id, time) end
  if count == 0 then return 'E' .. revText end
  local ahead = addClaims(lease, first, count)
  return ahead and ('H' .. revText .. ahead) or ('G' .. revText)
end

-- The claim of this lease with this token on this key, or why there is none.
local function findClaim(id, key, token)
  local saved = get(claims, token .. ' ' .. key)
  if saved and match(saved, '^[^\31]*') == id then return saved end
  if not leaseOf(id) then return false, noLease(id) end
  local line = get(lines, key)
  return false, refuse('claim-not-found', id, token, key, line and tokenAt(line, 1) or '')
end

local function release()
  local id, token, count = ARGV[position + 1], ARGV[position + 2], tonumber(ARGV[position + 3])
  local first = position + 4
  position = position + 3 + count
  for at = first, first + count - 1 do
    local saved, refusal = findClaim(id, ARGV[at], token)
    if not saved then return refusal end
  end
  revise()
  for at = first, first + count - 1 do
    local key = ARGV[at]
    remove(key, token, get(claims, token .. ' ' .. key), RELEASED)
    settle(key)
  end
  return 'R' .. revText
end

local function update()
  local id, token, key, value = argument(), argument(), argument(), argument()
  local saved, refusal = findClaim(id, key, token)
  if not saved then return refusal end
  revise()
  local _, made, held, standing, multi = match(saved, CLAIM)
  put(claims, token .. ' ' .. key, concat({ id, made, held, standing, multi, value }, US))
  tell('u', key, token, leaseOf(id), standing, value, '', '', '')
  return 'R' .. revText
end

local function revoked(leaseCount, claimCount, more)
  return concat({ 'V' .. revText, leaseCount, claimCount, more and '1' or '' }, US)
end

-- Gives leases a last deadline that no renewal can pass.
local function cap(ids, time, ending)
  local count = 0
  for _, id in ipairs(ids) do
    local lease = leaseOf(id)
    if lease.eol > time then
      if count == 0 then revise() end
      count = count + 1
      lease.eol, lease.capped = time, ending
      saveLease(lease)
      put(renewed, id, 'm' .. text(renewedAt(id)))
      lookAt(id, deadline(lease))
      note(id, concat({ 'c', revText, text(time - now), ending }, US))
    end
  end
  return count
end

local function revokeLeases(kind, id, after, said)
  if not leaseOf(id) then return noLease(id) end
  local ids, more = { id }, false
  if kind == 'parent' then
    ids = childrenOf(id)
    more = #ids > LIMITS.page
    while #ids > LIMITS.page do ids[#ids] = nil end
  end
  if after > 0 then return revoked(cap(ids, now + after, 'broken' .. said), 0, more) end
  if #ids == 0 then return revoked(0, 0, more) end
  revise()
  local all = family(ids)
  local removed = finishLeases(all, 'revoked' .. said)
  return revoked(#all, removed, more)
end

local function collect(key, victims)
  local line = get(lines, key)
  if not line then return end
  local _, count = counts(line)
  for at = 1, count do
    if #victims > LIMITS.page then return end
    victims[#victims + 1] = { key, (tokenAt(line, at)) }
  end
end

local function revokeClaims(kind, target, token, said)
  local victims = {}
  if kind == 'key' then
    collect(target, victims)
  elseif kind == 'claim' then
    if get(claims, token .. ' ' .. target) then victims[1] = { target, token } end
  else
    write()
    local first = '[' .. target
    repeat
      local names = call('ZRANGEBYLEX', BASE .. 'names', first, '(' .. target .. '\255', 'LIMIT', 0, 100)
      for _, key in ipairs(names) do collect(key, victims) end
      first = names[#names] and ('(' .. names[#names])
    until not first or #victims > LIMITS.page
  end
  local more = #victims > LIMITS.page
  if more then victims[#victims] = nil end
  if #victims == 0 then return revoked(0, 0, more) end
  revise()
  local ending = 'revoked' .. said
  for _, victim in ipairs(victims) do
    local key, its = victim[1], victim[2]
    local id = remove(key, its, get(claims, its .. ' ' .. key), ending)
    note(id, concat({ 'r', revText, key, its, ending }, US))
  end
  local done = {}
  for _, victim in ipairs(victims) do
    if not done[victim[1]] then
      done[victim[1]] = true
      settle(victim[1])
    end
  end
  return revoked(0, #victims, more)
end

local function revoke()
  local kind, target, token, after, by, why =
    argument(), argument(), argument(), argument(), argument(), argument()
  local said = GS .. by .. GS .. why
  if kind == 'lease' or kind == 'parent' then
    return revokeLeases(kind, target, tonumber(after), said)
  end
  return revokeClaims(kind, target, token, said)
end

local function renew()
  local count, lost, capped = tonumber(argument()), {}, {}
  for at = position + 1, position + count do
    local id = ARGV[at]
    local before = get(renewed, id)
    if not before then
      lost[#lost + 1] = (at - position) .. US .. (recall(ended, id) or '')
    elseif sub(before, 1, 1) ~= 'm' then
      put(renewed, id, nowText)
    else
      local lease = leaseOf(id)
      renewLease(lease)
      if deadline(lease) == lease.eol then
        capped[#capped + 1] = concat({ at - position, text(max(0, lease.eol - now)), lease.capped }, US)
      end
    end
  end
  position = position + count
  if #lost == 0 and #capped == 0 then return 'N' end
  for _, each in ipairs(capped) do lost[#lost + 1] = each end
  return 'N' .. (#lost - #capped) .. RS .. concat(lost, RS)
end
`
