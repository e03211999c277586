/** The calls that only read, and those of the store itself: a lease's claims, new events. */
export const READS = String.raw`
entry = function(key, most)
  local queue = S.queueOf(key)
  if not queue then return '0\0310', {} end
  local held, count = S.counts(queue)
  local shown = {}
  for at = 1, math.min(count, most or math.min(held + 1, S.limits.shown)) do
    shown[at] = '\30' .. S.more.claimText(key, (S.tokenAt(queue, at)))
  end
  return held .. '\31' .. count, shown
end,

readKey = function(fields)
  local head, shown = S.more.entry(fields[1], tonumber(fields[2]))
  return 'K' .. S.revText .. '\31' .. head .. concat(shown)
end,

readPrefix = function(fields)
  local prefix, first, most = fields[1], fields[2], tonumber(fields[3])
  S.write()
  local parts, page = { '' }, math.min(most + 1, 1000)
  repeat
    local names = call('ZRANGEBYLEX', S.base .. 'names', first, '(' .. prefix .. '\255', 'LIMIT', 0, page)
    for _, name in ipairs(names) do
      local head, shown = S.more.entry(name)
      if shown[1] then
        parts[#parts + 1] = '\30' .. name .. '\31' .. head .. '\31' .. #shown .. concat(shown)
      end
      if #parts > most + 1 then break end
    end
    first = '(' .. (names[#names] or '')
  until #names < page or #parts > most + 1
  local more = #parts > most + 1
  if more then parts[#parts] = nil end
  parts[1] = 'P' .. S.revText .. '\31' .. (more and '1' or '')
  return concat(parts)
end,

leaseText = function(lease)
  local id = lease.id
  return concat({ id, lease.holder, lease.ttl, lease.grace, lease.labels, lease.parent,
    lease.granted, S.text(S.renewedAt(id)), S.text(S.deadline(lease)), S.text(lease.eol),
    S.size('c:' .. id), S.size('f:' .. id) }, '\31')
end,
gone = function(id)
  return 'Y' .. S.revText .. '\31' .. (S.endOf(id) or '')
end,

readLease = function(fields)
  local id, most = fields[1], tonumber(fields[2])
  local lease = S.leaseOf(id)
  if not lease then return S.more.gone(id) end
  local parts = { 'L' .. S.revText, S.more.leaseText(lease) }
  for at, claim in ipairs(S.more.claimsOf(id)) do
    if at > most then break end
    parts[#parts + 1] = S.more.claimText(claim[2], claim[1])
  end
  return concat(parts, '\30')
end,

readLeases = function(fields)
  local after, most = fields[1], tonumber(fields[2])
  S.write()
  local ids = call('ZRANGEBYSCORE', S.base .. 'born', after, '+inf', 'LIMIT', 0, most + 1)
  local parts = { 'A' .. S.revText .. '\31' .. (#ids > most and '1' or '') }
  for at = 1, math.min(#ids, most) do
    parts[#parts + 1] = S.more.leaseText(S.leaseOf(ids[at]))
  end
  return concat(parts, '\30')
end,

-- A tenure is the event of its end. Each has the revision of the one before it on the same key.
-- Tenures that ended in one revision are together in one entry of the log.
readHistory = function(fields)
  local key, most = fields[1], S.limits.historyPerKey
  S.write()
  local queue = S.get('lines', key)
  local parts, at = { 'T' .. S.revText }, queue and sub(queue, 3, 18)
  while at and #parts <= most do
    local item = call('XRANGE', S.base .. 'log', at, '+', 'COUNT', 1)[1]
    local own, before = {}, nil
    for event in string.gmatch(item and item[2][2] or '', '[^\30]+') do
      local its, kind, name = match(event, '^([^\31]*)\31([^\31]*)\31([^\31]*)')
      local held, previous = match(event, '\31([^\31]*)\31([^\31]*)$')
      if its == at and kind == 'r' and name == key and held ~= '' then
        own[#own + 1] = event
        before = before or previous
      end
    end
    for index = #own, 1, -1 do
      if #parts <= most then parts[#parts + 1] = own[index] end
    end
    at = before
  end
  return concat(parts, '\30')
end,

-- The claims of a lease, for its watch.
ownClaims = function(fields)
  local id = fields[1]
  if not S.leaseOf(id) then return S.more.gone(id) end
  local parts = { 'S' .. S.revText }
  for _, claim in ipairs(S.more.claimsOf(id)) do
    local token, key = claim[1], claim[2]
    local it = S.claimAt(key, token)
    local holds = S.allHold(token, sub(it, 59, 59), sub(it, 34, 50))
    parts[#parts + 1] = key .. '\31' .. token .. '\31' .. (holds and '1' or '')
  end
  return concat(parts, '\30')
end,

-- The events after a revision, at most some of them; none without a revision.
eventsAfter = function(fields)
  local from = fields[1]
  S.write()
  if from == '' then return 'F' .. S.revText .. '\31' end
  local after = tonumber(from)
  if after < S.complete or after > S.rev then return 'O' .. format('%d', S.complete) end
  local parts, bytes, more = {}, 0, false
  repeat
    local items = call('XRANGE', S.base .. 'log', '(' .. from, '+', 'COUNT', 16)
    for _, item in ipairs(items) do
      from = item[1]
      parts[#parts + 1] = '\30' .. item[2][2]
      bytes = bytes + #item[2][2]
    end
    more = #items == 16
  until not more or bytes > 262144
  local upTo = more and match(from, '^%d+') or S.revText
  return 'F' .. upTo .. '\31' .. (more and '1' or '') .. concat(parts)
end,
`
