/**
 * The script's state: what it has read from Redis, and what it will write when it is done.
 *
 * One run of the script carries out many calls. It caches what it reads, and writes all changes
 * together at the end, because in a script each Redis command costs about as much as all the rest
 * of a call. Everything is stored as strings, with the separators of `fields.ts`.
 *
 * All functions and all state are in one table, S. Each run creates them again, and creating a
 * function costs as much as the number of outer variables that it uses. So functions that most
 * runs do not need are created only when they are used: see `script.ts`.
 *
 * The keys, all in one slot by the tag in their names:
 *
 * - `meta`: identity, revision, time, and where the log of events begins; see `begin`.
 * - `lines`: key -> its queue of claims; see `queues.ts`. `names`: the keys in it, by name.
 * - `idle`: a queue of keys, some of which have no claims. `claims`: 'token key' -> the claim,
 *   unless it is alone in its queue.
 * - `groups`: token -> claims that were made together on several keys: how many, how many wait.
 * - `leases`: id -> its properties. `renewed`: id -> when it was last renewed.
 * - `due`: when each lease is checked next: never after its deadline, maybe before.
 * - `born`: the leases by the revision of their grant. `c:id`, `f:id`: its claims, its children.
 * - `log`: the latest events, a stream.
 * - `requests`, `ended`: the latest answers and ends, in two generations each, 1 the younger and 0
 *   the older: at least the required number is kept, at most twice as many.
 */
export const STATE = String.raw`
keys = {}, got = { lines = {} }, changed = {}, adds = {}, rems = {}, sizes = {}, named = {}, idle = {},
due = {}, born = {}, scored = false, known = {}, asked = {}, events = {}, eventCount = 0,
notes = false, found = {}, promoted = {}, wrote = false,

-- Times and durations are strings of milliseconds; an infinite one is the empty string.
text = function(number)
  if number == S.HUGE then return '' end
  return format('%.3f', number)
end,
number = function(text)
  if text == '' then return S.HUGE end
  return tonumber(text)
end,

revise = function()
  S.rev = S.rev + 1
  S.revText = format('%d', S.rev)
end,

each = function(command, name, args)
  local count = #args
  if count == 0 then return end
  for first = 1, count, 4000 do
    call(command, S.base .. name, unpack(args, first, math.min(first + 3999, count)))
  end
end,

get = function(name, field)
  local got = S.got[name]
  if not got then
    got = {}
    S.got[name] = got
  end
  local value = got[field]
  if value == nil then
    local key = S.keys[name]
    if not key then
      key = S.base .. name
      S.keys[name] = key
    end
    value = call('HGET', key, field)
    got[field] = value
  end
  return value
end,

set = function(name, field, value)
  local got, changed = S.got[name], S.changed[name]
  if not got then
    got = {}
    S.got[name] = got
  end
  if not changed then
    changed = {}
    S.changed[name] = changed
  end
  got[field] = value
  changed[#changed + 1] = field
end,

recall = function(name, field)
  return call('HGET', S.base .. name .. '1', field) or call('HGET', S.base .. name .. '0', field)
end,
-- Reads together what nearly all calls of a run need: the answers to their requests, or false, and
-- the queues of their keys.
fetch = function(requests, keys)
  local young = call('HMGET', S.young, unpack(requests))
  local old = call('HMGET', S.old, unpack(requests))
  for at = 1, #requests do S.known[requests[at]] = young[at] or old[at] end
  if not keys[1] then return end
  local lines, found = S.got.lines, call('HMGET', S.base .. 'lines', unpack(keys))
  for at = 1, #keys do lines[keys[at]] = found[at] end
end,
remember = function(request, answer)
  local asked = S.asked
  local count = #asked
  asked[count + 1] = request
  asked[count + 2] = answer
  S.known[request] = answer
end,
endOf = function(id)
  local over = S.got.ended1
  return over and over[id] or S.recall('ended', id)
end,
rotate = function(name)
  call('UNLINK', S.base .. name .. '0')
  call('RENAME', S.base .. name .. '1', S.base .. name .. '0')
end,

-- Members of sets are never added again after they were removed.
include = function(name, member)
  local adds = S.adds[name]
  if adds then adds[#adds + 1] = member else S.adds[name] = { member } end
end,
exclude = function(name, member)
  local rems = S.rems[name]
  if rems then rems[#rems + 1] = member else S.rems[name] = { member } end
end,
size = function(name)
  local size = S.sizes[name]
  if not size then
    size = call('SCARD', S.base .. name)
    S.sizes[name] = size
  end
  local adds, rems = S.adds[name], S.rems[name]
  return size + (adds and #adds or 0) - (rems and #rems or 0)
end,

-- Writes what is left of a field's changes: it may have changed more than once.
writeHash = function(name, changed)
  local got, set, del, sets = S.got[name], {}, {}, 0
  for at = 1, #changed do
    local field = changed[at]
    local value = got[field]
    if value then
      set[sets + 1] = field
      set[sets + 2] = value
      sets = sets + 2
    else
      del[#del + 1] = field
    end
  end
  S.each('HSET', name, set)
  S.each('HDEL', name, del)
end,

writeNames = function()
  local add = {}
  for at, key in ipairs(S.named) do
    add[2 * at - 1] = 0
    add[2 * at] = key
  end
  S.each('ZADD', 'names', add)
  S.named = {}
end,

-- All events of one run are one entry, with the last of their revisions: so none is ever split. The
-- log is cut by generations: the events after mid are the younger ones, those after complete are kept.
writeEvents = function()
  local events = concat(S.events, '\30')
  call('XADD', S.base .. 'log', S.revText .. '-0', 'e', events)
  call('PUBLISH', S.uid .. ':news', S.logged .. '\30' .. S.revText .. '\30' .. events)
  S.logged = S.revText
  S.gen = S.gen + S.eventCount
  S.events, S.eventCount = {}, 0
  if S.gen < S.limits.events then return end
  call('XTRIM', S.base .. 'log', 'MINID', format('%d', S.mid + 1))
  S.complete, S.mid, S.gen = math.max(S.complete, S.mid), S.rev, 0
end,

write = function()
  local over = S.changed.ended1
  S.wrote = S.wrote or S.asked[1] ~= nil
  if S.named[1] then S.writeNames() end
  if S.idle[1] then S.more.forgetIdle() end
  for name, changed in pairs(S.changed) do
    S.wrote = true
    S.writeHash(name, changed)
  end
  S.changed = {}
  if S.asked[1] then
    S.each('HSET', 'requests1', S.asked)
    S.asked = {}
    if call('HLEN', S.base .. 'requests1') >= S.limits.requests then S.rotate('requests') end
  end
  if over and call('HLEN', S.base .. 'ended1') >= S.limits.ended then S.rotate('ended') end
  for name, adds in pairs(S.adds) do S.each('SADD', name, adds) end
  for name, rems in pairs(S.rems) do S.each('SREM', name, rems) end
  S.adds, S.rems, S.sizes = {}, {}, {}
  if S.scored then S.more.writeScores() end
  if S.eventCount > 0 then S.writeEvents() end
  if S.notes then
    for id, input in pairs(S.notes) do call('PUBLISH', S.uid .. ':' .. id, input) end
    S.notes = false
  end
end,

note = function(id, input)
  local notes = S.notes or {}
  notes[id] = notes[id] and (notes[id] .. '\30' .. input) or input
  S.notes = notes
end,
`
