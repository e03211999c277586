/** The calls that only read, and those of the store itself: how a lease stands, what is new. */
export const READS = String.raw`
local function entry(key, most)
  local line = get(lines, key)
  if not line then return '0' .. US .. '0', {} end
  local held, count = counts(line)
  local shown = {}
  for at = 1, min(count, most or min(held + 1, LIMITS.shown)) do
    local token = tokenAt(line, at)
    shown[at] = RS .. claimText(key, token, get(claims, token .. ' ' .. key))
  end
  return held .. US .. count, shown
end

local function readKey()
  local key, most = argument(), tonumber(argument())
  local head, shown = entry(key, most)
  return 'K' .. revText .. US .. head .. concat(shown)
end

local function readPrefix()
  local prefix, first, most = argument(), argument(), tonumber(argument())
  write()
  local names = call('ZRANGEBYLEX', BASE .. 'names', first, '(' .. prefix .. '\255', 'LIMIT', 0, most + 1)
  local more = #names > most
  local parts = { 'P' .. revText .. US .. (more and '1' or '') }
  for at = 1, min(#names, most) do
    local head, shown = entry(names[at])
    parts[#parts + 1] = names[at] .. US .. head .. US .. #shown .. concat(shown)
  end
  return concat(parts, RS)
end

local function leaseText(lease)
  local id = lease.id
  return concat({ id, lease.holder, lease.ttl, lease.grace, lease.labels, lease.parent,
    lease.granted, text(renewedAt(id)), text(deadline(lease)), text(lease.eol),
    size('c:' .. id), size('f:' .. id) }, US)
end

local function gone(id)
  return 'Y' .. revText .. US .. (recall(ended, id) or '')
end

local function readLease()
  local id, most = argument(), tonumber(argument())
  local lease = leaseOf(id)
  if not lease then return gone(id) end
  local parts = { 'L' .. revText, leaseText(lease) }
  for at, claim in ipairs(claimsOf(id)) do
    if at > most then break end
    parts[#parts + 1] = claimText(claim[2], claim[1], get(claims, claim[3]))
  end
  return concat(parts, RS)
end

local function readLeases()
  local after, most = argument(), tonumber(argument())
  write()
  local ids = call('ZRANGEBYSCORE', BASE .. 'born', after, '+inf', 'LIMIT', 0, most + 1)
  local more = #ids > most
  local parts = { 'A' .. revText .. US .. (more and '1' or '') }
  for at = 1, min(#ids, most) do parts[#parts + 1] = leaseText(leaseOf(ids[at])) end
  return concat(parts, RS)
end

-- A tenure is the event of its end. Each knows the revision of the one before it on the same key;
-- where several ended in one revision they stand together in one entry of the log.
local function readHistory()
  local key = argument()
  write()
  local parts, at = { 'T' .. revText }, recall(past, key)
  while at and at ~= '' and #parts <= LIMITS.historyPerKey do
    local item = call('XRANGE', BASE .. 'log', at, '+', 'COUNT', 1)[1]
    local own, before = {}, nil
    for told in string.gmatch(item and item[2][2] or '', '[^\30]+') do
      local its, kind, name = match(told, '^([^\31]*)\31([^\31]*)\31([^\31]*)')
      local held, previous = match(told, '\31([^\31]*)\31([^\31]*)$')
      if its == at and kind == 'r' and name == key and held ~= '' then
        own[#own + 1] = told
        before = before or previous
      end
    end
    for index = #own, 1, -1 do
      if #parts <= LIMITS.historyPerKey then parts[#parts + 1] = own[index] end
    end
    at = before
  end
  return concat(parts, RS)
end

-- How the claims of a lease stand, for its watch.
local function standing()
  local id = argument()
  if not leaseOf(id) then return gone(id) end
  local parts = { 'S' .. revText }
  for _, claim in ipairs(claimsOf(id)) do
    local _, _, held, _, multi = match(get(claims, claim[3]), CLAIM)
    parts[#parts + 1] = concat({ claim[2], claim[1], allHold(claim[1], multi, held) and '1' or '' }, US)
  end
  return concat(parts, RS)
end

-- The events after a revision, or from now on none; some of them, where they are many.
local PAGE_BYTES = 262144
local function eventsAfter()
  local from = argument()
  write()
  if from == '' then return 'F' .. revText .. US end
  local after = tonumber(from)
  if after < complete or after > rev then return 'O' .. format('%.0f', complete) end
  local parts, bytes, upTo, more = {}, 0, revText, false
  repeat
    local items = call('XRANGE', BASE .. 'log', '(' .. from, '+', 'COUNT', 16)
    for _, item in ipairs(items) do
      from = item[1]
      parts[#parts + 1] = item[2][2]
      bytes = bytes + #item[2][2]
    end
    more = #items == 16
  until not more or bytes > PAGE_BYTES
  if more then upTo = match(from, '^%d+') end
  return 'F' .. upTo .. US .. (more and '1' or '') .. (#parts > 0 and (RS .. concat(parts, RS)) or '')
end
`
