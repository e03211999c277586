/**
 * Creates the stream if it is missing. Entries have the ids `<epoch>-<position>`. A stream that was
 * lost starts again with a higher epoch, so that no process mistakes it for the old one. It starts
 * after the newest snapshot, if there is one. A namespace with leases of `redisStore` is refused.
 */
export const CREATE = `#!lua
if redis.call('EXISTS', KEYS[1]) == 1 then return end
if redis.call('EXISTS', KEYS[4]) == 1 then
  return redis.error_reply('FORM the namespace ' .. ARGV[1] .. ' holds a store of redisStore, form=native: ' .. KEYS[4])
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local epoch = math.max(now, (tonumber(redis.call('GET', KEYS[2])) or 0) + 1)
local position = 0
for _, name in ipairs(redis.call('HKEYS', KEYS[3])) do
  local digits = string.match(name, '^(%d+)%.manifest$')
  if digits then position = math.max(position, tonumber(digits)) end
end
redis.call('SET', KEYS[2], string.format('%.0f', epoch))
redis.call('XADD', KEYS[1], string.format('%.0f-%.0f', epoch, position), 'leasehold', '1')`

/** The last id, or the type of the key if it is not a stream. XINFO alone would return two entries. */
export const LAST = `#!lua flags=no-writes
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'stream' then return kind end
local about = redis.call('XINFO', 'STREAM', KEYS[1])
for at = 1, #about, 2 do
  if about[at] == 'last-generated-id' then return about[at + 1] end
end`
