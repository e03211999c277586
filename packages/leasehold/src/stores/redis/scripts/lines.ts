/**
 * The line of claims on each key, as `holds()` of the port tells it, as one text. Its first character
 * says what it is, the second whether it stands in the queue of `tidy`, the next sixteen are the
 * revision at which the key's latest tenure ended. Then, by the first character:
 *
 * - `-` nobody has claimed it; it is remembered for its history, and because a key that was used is
 *   often used again.
 * - `=` one claim: its token (always sixteen digits), its standing (eight characters: `########`
 *   exclusive, else the limit, zero for none), and what the claim is.
 * - `+` several: eight digits for how many hold, and for each claim its token and its standing; what
 *   they are is in `claims`. So finding one among ten thousand is a search by halves, and putting
 *   one in or out copies bytes and parses nothing.
 */
export const LINES = String.raw`
lineOf = function(key)
  local line = S.get('lines', key)
  if line and sub(line, 1, 1) == '-' then return false, line end
  return line, line
end,
counts = function(line)
  if sub(line, 1, 1) == '=' then return 1, 1 end
  return tonumber(sub(line, 19, 26)), (#line - 26) / 24
end,
tokenAt = function(line, index)
  local first = 24 * index + 3
  if sub(line, 1, 1) == '=' then first = 19 end
  return sub(line, first, first + 15), sub(line, first + 16, first + 23)
end,

-- What a claim is, by places: 1 lease, 17 claimed at, 34 held since (spaces where it waits), 51
-- standing, 59 whether it was made with others, 60 value.
claimAt = function(key, token)
  local line = S.lineOf(key)
  if not line then return false end
  if sub(line, 1, 1) == '+' then return S.get('claims', token .. ' ' .. key) end
  return sub(line, 19, 34) == token and sub(line, 43)
end,
putClaim = function(key, token, claim)
  local line = S.lineOf(key)
  if sub(line, 1, 1) == '+' then S.set('claims', token .. ' ' .. key, claim)
  else S.set('lines', key, sub(line, 1, 42) .. claim) end
end,

-- Whether a claim holds behind so many that hold.
behind = function(line, standing, held)
  if held == 0 then return true end
  local _, first = S.tokenAt(line, 1)
  if standing == '########' or first == '########' then return false end
  local limit = tonumber(standing)
  return limit == 0 or held < limit
end,
isFree = function(key, standing)
  local line = S.lineOf(key)
  if not line then return true end
  local held, count = S.counts(line)
  return held == count and S.behind(line, standing, held)
end,

-- Puts a claim at the end of its line; answers whether it holds at once.
append = function(key, token, standing, start, rest)
  local line, known = S.lineOf(key)
  if not line then
    if not known then S.named[#S.named + 1] = key end
    S.set('lines', key, '=' .. (known and sub(known, 2, 18) or '.0000000000000000') .. token
      .. standing .. start .. S.nowText .. rest)
    return true
  end
  if sub(line, 1, 1) == '=' then
    S.set('claims', sub(line, 19, 34) .. ' ' .. key, sub(line, 43))
    line = '+' .. sub(line, 2, 18) .. '00000001' .. sub(line, 19, 42)
  end
  local held, count = S.counts(line)
  local holds = held == count and S.behind(line, standing, held)
  if holds then line = S.withHeld(line, held + 1) end
  S.set('lines', key, line .. token .. standing)
  S.set('claims', token .. ' ' .. key, start .. (holds and S.nowText or S.NEVER) .. rest)
  return holds
end,
withHeld = function(line, held)
  return sub(line, 1, 18) .. format('%08d', held) .. sub(line, 27)
end,

-- Tokens are compared in two halves of eight digits: as numbers, whatever Redis' locale is.
find = function(line, token)
  local low, high = 1, (#line - 26) / 24
  local upper, lower = tonumber(sub(token, 1, 8)), tonumber(sub(token, 9))
  while low <= high do
    local middle = math.floor((low + high) / 2)
    local there = S.tokenAt(line, middle)
    if there == token then return middle end
    local one = tonumber(sub(there, 1, 8))
    if one < upper or (one == upper and tonumber(sub(there, 9)) < lower) then
      low = middle + 1
    else
      high = middle - 1
    end
  end
end,

-- Takes a claim out, which has held or not. Who stands behind it does not hold until settle.
cut = function(key, token, held)
  local line = S.get('lines', key)
  local isOne = sub(line, 1, 1) == '='
  local past = held and S.revText or sub(line, 3, 18)
  if not isOne then S.set('claims', token .. ' ' .. key, false) end
  if isOne or #line == 50 then
    if sub(line, 2, 2) == '.' then S.idle[#S.idle + 1] = key end
    S.set('lines', key, '-q' .. past)
    return
  end
  local at = S.find(line, token)
  local holding = tonumber(sub(line, 19, 26))
  if at <= holding then holding = holding - 1 end
  S.set('lines', key, '+' .. sub(line, 2, 2) .. past .. format('%08d', holding)
    .. sub(line, 27, 24 * at + 2) .. sub(line, 24 * at + 27))
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

-- Lets those at the front hold, and tells them; heirs collects them: see bury.
settle = function(key)
  local line = S.get('lines', key)
  if sub(line, 1, 1) ~= '+' then return end
  local held, count = S.counts(line)
  local before = held
  while held < count do
    local token, standing = S.tokenAt(line, held + 1)
    if not S.behind(line, standing, held) then break end
    held = held + 1
    local name = token .. ' ' .. key
    local claim = S.get('claims', name)
    local id, multi = sub(claim, 1, 16), sub(claim, 59, 59)
    S.set('claims', name, sub(claim, 1, 33) .. S.nowText .. sub(claim, 51))
    if multi ~= '.' then S.regroup(token, 0, -1) end
    if S.allHold(token, multi, S.nowText) then S.note(id, 'h\31' .. S.revText .. '\31' .. token) end
    S.heirs[#S.heirs + 1] = id
  end
  if held ~= before then S.set('lines', key, S.withHeld(line, held)) end
end,
`
