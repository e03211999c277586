/**
 * The script's state: what it has read of Redis, and what it will write when it is done.
 *
 * One run of the script carries out many calls. What it reads it keeps, and what it changes it
 * writes together at the end, because in a script each Redis command costs about as much as all
 * the rest of a call. Everything kept is text, with the separators of `fields.ts`.
 *
 * The keys, all in one slot by the tag in their names:
 *
 * - `meta`: who wrote it, revision, time, and where the log of events begins; see `begin`.
 * - `lines`: key -> how many hold, and the claims in order, 24 characters each.
 * - `names`: the claimed keys, by name. `claims`: 'token key' -> what the claim is.
 * - `groups`: token -> claims that were made together on several keys: how many, how many wait.
 * - `leases`: id -> what it was granted with. `renewed`: id -> when it was last renewed.
 * - `due`: when each lease is to be looked at: never later than its deadline, maybe earlier.
 * - `born`: the leases by the revision of their grant. `c:id`, `f:id`: its claims, its children.
 * - `log`: the latest events, a stream. `past`: key -> the revision of its latest tenure's end.
 * - `requests`, `ended`: the latest answers and ends. Like `past` in two generations each.
 */
export const STATE = String.raw`
local call, sub, format, match = redis.call, string.sub, string.format, string.match
local concat, sort, floor, min, max = table.concat, table.sort, math.floor, math.min, math.max
local HUGE = math.huge
local US, RS, GS = '\31', '\30', '\29'
local BASE = sub(KEYS[1], 1, -5)

local now, nowText, rev, revText
local version, uid, run, last, raw, since, logged, complete, mid, gen, nextDue
local wrote = false

-- Times and spans are texts of milliseconds; one that never ends is the empty text.
local function text(number)
  if number == HUGE then return '' end
  return format('%.3f', number)
end
local function number(text)
  if text == '' then return HUGE end
  return tonumber(text)
end

local function revise()
  rev = rev + 1
  revText = format('%.0f', rev)
end

local function each(command, key, args)
  for first = 1, #args, 4000 do
    call(command, key, unpack(args, first, min(first + 3999, #args)))
  end
end

local hashes = {}
local function hash(name)
  local made = { key = BASE .. name, got = {}, put = {}, was = {} }
  hashes[#hashes + 1] = made
  return made
end
local function get(from, field)
  local value = from.got[field]
  if value == nil then
    value = call('HGET', from.key, field)
    from.got[field] = value
  end
  return value
end
local function put(into, field, value)
  if into.put[field] == nil then into.was[field] = into.got[field] end
  into.got[field] = value
  into.put[field] = value
  into.dirty = true
end

-- Remembers at least the last so many, and at most twice as many: see rotate.
local function recent(name)
  return { name = name, young = hash(name .. '1'), old = hash(name .. '0') }
end
local function recall(from, field)
  return get(from.young, field) or get(from.old, field)
end
local function rotate(which)
  call('UNLINK', which.old.key)
  call('RENAME', which.young.key, which.old.key)
end

local lines, claims, groups = hash('lines'), hash('claims'), hash('groups')
local leases, renewed = hash('leases'), hash('renewed')
local requests, ended, past = recent('requests'), recent('ended'), recent('past')

local sets = {}
local function setOf(name)
  local known = sets[name]
  if not known then
    known = { add = {}, rem = {}, more = 0 }
    sets[name] = known
  end
  return known
end
local function include(name, member)
  local set = setOf(name)
  if set.rem[member] then set.rem[member] = nil else set.add[member] = true end
  set.more = set.more + 1
end
local function exclude(name, member)
  local set = setOf(name)
  if set.add[member] then set.add[member] = nil else set.rem[member] = true end
  set.more = set.more - 1
end
local function size(name)
  local set = setOf(name)
  if not set.size then set.size = call('SCARD', BASE .. name) end
  return set.size + set.more
end
local function members(name)
  local set, found = setOf(name), {}
  for _, member in ipairs(call('SMEMBERS', BASE .. name)) do
    if not set.rem[member] then found[#found + 1] = member end
  end
  for member in pairs(set.add) do found[#found + 1] = member end
  return found
end

local due, born = {}, {}
local function lookAt(id, time)
  due[id] = time
  if time and time < nextDue then nextDue = time end
end

local events, eventCount, notes = {}, 0, {}
local function note(id, said)
  local before = notes[id]
  notes[id] = before and (before .. RS .. said) or said
end

local function writeHash(which)
  local set, del = {}, {}
  local add, rem = {}, {}
  local named = which == lines
  for field, value in pairs(which.put) do
    local was = which.was[field]
    if value then
      set[#set + 1] = field
      set[#set + 1] = value
      if named and not was then add[#add + 1] = 0; add[#add + 1] = field end
    elseif was ~= false then
      del[#del + 1] = field
      if named then rem[#rem + 1] = field end
    end
  end
  each('HSET', which.key, set)
  each('HDEL', which.key, del)
  if named then
    each('ZADD', BASE .. 'names', add)
    each('ZREM', BASE .. 'names', rem)
  end
  which.put, which.was, which.dirty = {}, {}, false
end

local function writeScores(name, scores)
  local add, rem = {}, {}
  for member, score in pairs(scores) do
    if score then
      add[#add + 1] = format('%.3f', score)
      add[#add + 1] = member
    else
      rem[#rem + 1] = member
    end
  end
  each('ZADD', BASE .. name, add)
  each('ZREM', BASE .. name, rem)
end
local function writeDue()
  writeScores('due', due)
  due = {}
end

local function writeSets()
  for name, set in pairs(sets) do
    local add, rem = {}, {}
    for member in pairs(set.add) do add[#add + 1] = member end
    for member in pairs(set.rem) do rem[#rem + 1] = member end
    each('SADD', BASE .. name, add)
    each('SREM', BASE .. name, rem)
  end
  sets = {}
end

-- All events of one run are one entry, by the last of their revisions: so none is ever split. The
-- log is cut by generations: the events after mid are the younger, those after complete are kept.
local function writeEvents()
  if eventCount == 0 then return end
  local told = concat(events, RS)
  call('XADD', BASE .. 'log', revText .. '-0', 'e', told)
  call('PUBLISH', uid .. ':news', format('%.0f', logged) .. RS .. revText .. RS .. told)
  logged = rev
  gen = gen + eventCount
  if gen >= LIMITS.events then
    call('XTRIM', BASE .. 'log', 'MINID', format('%.0f', mid + 1))
    complete, mid, gen = max(complete, mid), rev, 0
    if call('EXISTS', past.young.key) == 1 then rotate(past) end
  end
  events, eventCount = {}, 0
end

local function write()
  local asked, over = requests.young.dirty, ended.young.dirty
  for _, which in ipairs(hashes) do
    if which.dirty then
      wrote = true
      writeHash(which)
    end
  end
  writeSets()
  writeDue()
  writeScores('born', born)
  born = {}
  if asked and call('HLEN', requests.young.key) >= LIMITS.requests then rotate(requests) end
  if over and call('HLEN', ended.young.key) >= LIMITS.ended then rotate(ended) end
  writeEvents()
  for id, said in pairs(notes) do call('PUBLISH', uid .. ':' .. id, said) end
  notes = {}
end
`
