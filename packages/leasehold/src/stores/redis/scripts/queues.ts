/**
 * The queue of claims on each key, ordered as in `holds()` of the port, as one string. Its first
 * character is its kind, the second says whether the key is in the queue of `forgetIdle`, and the next
 * sixteen are the revision at which the key's latest tenure ended. Then, by kind:
 *
 * - `-` no claims: it is kept for its history, and because a used key is often used again.
 * - `=` one claim: its token (always sixteen digits), its mode (eight characters: `########` for
 *   exclusive, otherwise the limit, zero for none), and the claim itself.
 * - `+` several: eight digits for the number of holders, and for each claim its token and its mode.
 *   The claims themselves are in `claims`. So finding one of ten thousand is a binary search, and
 *   adding or removing one copies bytes and parses nothing.
 */
export const QUEUES = String.raw`
queueOf = function(key)
  local queue = S.get('lines', key)
  if queue and sub(queue, 1, 1) == '-' then return false, queue end
  return queue, queue
end,
counts = function(queue)
  if sub(queue, 1, 1) == '=' then return 1, 1 end
  return tonumber(sub(queue, 19, 26)), (#queue - 26) / 24
end,
tokenAt = function(queue, index)
  local first = 24 * index + 3
  if sub(queue, 1, 1) == '=' then first = 19 end
  return sub(queue, first, first + 15), sub(queue, first + 16, first + 23)
end,

-- A claim, by positions: 1 lease, 17 claimed at, 34 held since (spaces while it waits), 51 mode,
-- 59 whether it was made with others, 60 value.
claimAt = function(key, token)
  local queue = S.queueOf(key)
  if not queue then return false end
  if sub(queue, 1, 1) == '+' then return S.get('claims', token .. ' ' .. key) end
  return sub(queue, 19, 34) == token and sub(queue, 43)
end,
putClaim = function(key, token, claim)
  local queue = S.queueOf(key)
  if sub(queue, 1, 1) == '+' then S.set('claims', token .. ' ' .. key, claim)
  else S.set('lines', key, sub(queue, 1, 42) .. claim) end
end,

-- Whether a claim holds behind this many holders.
behind = function(queue, mode, held)
  if held == 0 then return true end
  local _, first = S.tokenAt(queue, 1)
  if mode == '########' or first == '########' then return false end
  local limit = tonumber(mode)
  return limit == 0 or held < limit
end,
isFree = function(key, mode)
  local queue = S.queueOf(key)
  if not queue then return true end
  local held, count = S.counts(queue)
  return held == count and S.behind(queue, mode, held)
end,

-- Adds a claim at the end of its queue. Returns whether it holds at once.
append = function(key, token, mode, start, rest)
  local queue, known = S.queueOf(key)
  if not queue then
    if not known then S.named[#S.named + 1] = key end
    S.set('lines', key, '=' .. (known and sub(known, 2, 18) or '.0000000000000000') .. token
      .. mode .. start .. S.nowText .. rest)
    return true
  end
  if sub(queue, 1, 1) == '=' then
    S.set('claims', sub(queue, 19, 34) .. ' ' .. key, sub(queue, 43))
    queue = '+' .. sub(queue, 2, 18) .. '00000001' .. sub(queue, 19, 42)
  end
  local held, count = S.counts(queue)
  local holds = held == count and S.behind(queue, mode, held)
  if holds then queue = S.withHeld(queue, held + 1) end
  S.set('lines', key, queue .. token .. mode)
  S.set('claims', token .. ' ' .. key, start .. (holds and S.nowText or S.NEVER) .. rest)
  return holds
end,
withHeld = function(queue, held)
  return sub(queue, 1, 18) .. format('%08d', held) .. sub(queue, 27)
end,

-- Tokens are compared in two halves of eight digits: as numbers, whatever Redis's locale is.
find = function(queue, token)
  local low, high = 1, (#queue - 26) / 24
  local upper, lower = tonumber(sub(token, 1, 8)), tonumber(sub(token, 9))
  while low <= high do
    local middle = math.floor((low + high) / 2)
    local there = S.tokenAt(queue, middle)
    if there == token then return middle end
    local one = tonumber(sub(there, 1, 8))
    if one < upper or (one == upper and tonumber(sub(there, 9)) < lower) then
      low = middle + 1
    else
      high = middle - 1
    end
  end
end,

-- Removes a claim, holding or waiting. The claims behind it do not hold before promote.
cut = function(key, token, held)
  local queue = S.get('lines', key)
  local isOne = sub(queue, 1, 1) == '='
  local past = held and S.revText or sub(queue, 3, 18)
  if not isOne then S.set('claims', token .. ' ' .. key, false) end
  if isOne or #queue == 50 then
    if sub(queue, 2, 2) == '.' then S.idle[#S.idle + 1] = key end
    S.set('lines', key, '-q' .. past)
    return
  end
  local at = S.find(queue, token)
  local holding = tonumber(sub(queue, 19, 26))
  if at <= holding then holding = holding - 1 end
  S.set('lines', key, '+' .. sub(queue, 2, 2) .. past .. format('%08d', holding)
    .. sub(queue, 27, 24 * at + 2) .. sub(queue, 24 * at + 27))
end,

allHold = function(token, multi, heldSince)
  if multi == '.' then return heldSince ~= S.NEVER end
  return match(S.get('groups', token), ' (%d+)$') == '0'
end,
regroup = function(token, made, waiting)
  local all, wait = match(S.get('groups', token) or '0 0', '^(%d+) (%d+)$')
  all, wait = all + made, wait + waiting
  S.set('groups', token, all > 0 and format('%d %d', all, wait) or false)
end,

-- Lets the first waiting claims hold, and notifies all watches of it. promoted collects them: see endOverdue.
promote = function(key)
  local queue = S.get('lines', key)
  if sub(queue, 1, 1) ~= '+' then return end
  local held, count = S.counts(queue)
  local before = held
  while held < count do
    local token, mode = S.tokenAt(queue, held + 1)
    if not S.behind(queue, mode, held) then break end
    held = held + 1
    local name = token .. ' ' .. key
    local claim = S.get('claims', name)
    local id, multi = sub(claim, 1, 16), sub(claim, 59, 59)
    S.set('claims', name, sub(claim, 1, 33) .. S.nowText .. sub(claim, 51))
    S.addEvent('h', key, token, S.leaseOf(id), mode, sub(claim, 60), '', '', '')
    if multi ~= '.' then S.regroup(token, 0, -1) end
    if S.allHold(token, multi, S.nowText) then S.note(id, 'h\31' .. S.revText .. '\31' .. token) end
    S.promoted[#S.promoted + 1] = id
  end
  if held ~= before then S.set('lines', key, S.withHeld(queue, held)) end
end,
`
