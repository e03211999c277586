/**
 * The line of claims on each key, as `holds()` of the port tells it. A line is one text: eight
 * digits for how many hold, then for each claim its token (always sixteen digits) and its standing
 * (eight characters: `########` exclusive, else the limit, zero for none). So finding one among
 * ten thousand is a search by halves, and putting one in or out copies bytes and parses nothing.
 */
export const LINES = String.raw`
local EXCLUSIVE = '########'
local ENTRY, HEAD = 24, 8
local CLAIM = '^([^\31]*)\31([^\31]*)\31([^\31]*)\31([^\31]*)\31([^\31]*)\31(.*)$'

local function counts(line)
  return tonumber(sub(line, 1, HEAD)), (#line - HEAD) / ENTRY
end
local function tokenAt(line, index)
  local first = HEAD + ENTRY * (index - 1) + 1
  return sub(line, first, first + 15), sub(line, first + 16, first + 23)
end

-- Whether a claim holds behind so many that hold.
local function behind(line, standing, held)
  if held == 0 then return true end
  if standing == EXCLUSIVE or sub(line, HEAD + 17, HEAD + 24) == EXCLUSIVE then return false end
  local limit = tonumber(standing)
  return limit == 0 or held < limit
end

local function isFree(key, standing)
  local line = get(lines, key)
  if not line then return true end
  local held, count = counts(line)
  return held == count and behind(line, standing, held)
end

-- Puts a claim at the end; answers whether it holds at once.
local function append(key, token, standing)
  local line = get(lines, key)
  if not line then
    put(lines, key, '00000001' .. token .. standing)
    return true
  end
  local held, count = counts(line)
  local holds = held == count and behind(line, standing, held)
  if holds then line = format('%08d', held + 1) .. sub(line, HEAD + 1) end
  put(lines, key, line .. token .. standing)
  return holds
end

-- Tokens are compared in two halves of eight digits: as numbers, whatever Redis' locale is.
local function find(line, token)
  local low, high = 1, (#line - HEAD) / ENTRY
  local upper, lower = tonumber(sub(token, 1, 8)), tonumber(sub(token, 9))
  while low <= high do
    local middle = floor((low + high) / 2)
    local there = tokenAt(line, middle)
    if there == token then return middle end
    local one = tonumber(sub(there, 1, 8))
    if one < upper or (one == upper and tonumber(sub(there, 9)) < lower) then
      low = middle + 1
    else
      high = middle - 1
    end
  end
end

-- Takes a claim out. Those behind it do not come to hold until settle.
local function cut(key, token)
  local line = get(lines, key)
  if #line == HEAD + ENTRY then
    put(lines, key, false)
    return
  end
  local at = find(line, token)
  local held = tonumber(sub(line, 1, HEAD))
  if at <= held then held = held - 1 end
  put(lines, key, format('%08d', held) .. sub(line, HEAD + 1, HEAD + ENTRY * (at - 1))
    .. sub(line, HEAD + ENTRY * at + 1))
end

local function allHold(token, multi, heldSince)
  if multi == '' then return heldSince ~= '' end
  return match(get(groups, token), ' (%d+)$') == '0'
end
local function regroup(token, made, waiting)
  local all, wait = match(get(groups, token) or '0 0', '^(%d+) (%d+)$')
  all, wait = all + made, wait + waiting
  put(groups, token, all > 0 and format('%d %d', all, wait) or false)
end

-- Lets those at the front hold, and tells them; heirs collects them: see bury.
local heirs = {}
local function settle(key)
  local line = get(lines, key)
  if not line then return end
  local held, count = counts(line)
  local before = held
  while held < count do
    local token, standing = tokenAt(line, held + 1)
    if not behind(line, standing, held) then break end
    held = held + 1
    local name = token .. ' ' .. key
    local id, made, _, kind, multi, value = match(get(claims, name), CLAIM)
    put(claims, name, concat({ id, made, nowText, kind, multi, value }, US))
    if multi ~= '' then regroup(token, 0, -1) end
    if allHold(token, multi, nowText) then note(id, concat({ 'h', revText, token }, US)) end
    heirs[#heirs + 1] = id
  end
  if held ~= before then put(lines, key, format('%08d', held) .. sub(line, HEAD + 1)) end
end
`
