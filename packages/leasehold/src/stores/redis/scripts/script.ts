import { createHash } from 'node:crypto'
import { CLAIMS_SHOWN, type Limits } from '../../../port/index.ts'
import { BEGIN } from './begin.ts'
import { CHANGES } from './changes.ts'
import { LEASES } from './leases.ts'
import { LINES } from './lines.ts'
import { READS } from './reads.ts'
import { STATE } from './state.ts'

/**
 * The arguments of a run: who sends, the number of this run among the sender's, how many calls;
 * then each call: what it is, its request id where it may have one, and its own arguments. The
 * answer: milliseconds until a lease must be looked at, whose data it is, and an answer each.
 *
 * A client library may send a run again when its connection broke, though nobody asked it to: what
 * has a number that was seen before is not carried out.
 */
const MAIN = `
local CHANGES = { c = claim, r = release, g = grant, u = update, v = revoke }
local OTHERS = { n = renew, k = readKey, p = readPrefix, l = readLease, a = readLeases,
  h = readHistory, s = standing, f = eventsAfter }
local SWEPT_BY_THE_WAY, SWEPT_ON_PURPOSE = 20, 500

local trouble = begin()
if trouble then return redis.error_reply(trouble) end
local sender = US .. ARGV[1]
local seen = recall(requests, sender)
if seen and tonumber(seen) >= tonumber(ARGV[2]) then return redis.error_reply('REPEATED') end

local expected = nextDue
local most = SWEPT_BY_THE_WAY
local answers = { '', uid }
for at = 3, tonumber(ARGV[3]) + 2 do
  local kind = argument()
  local change = CHANGES[kind]
  if change then
    local request, length = argument(), argument()
    local known = request ~= '' and recall(requests, request)
    if known then
      position = position + tonumber(length)
      answers[at] = known
    else
      local answer = change()
      if request ~= '' then put(requests.young, request, answer) end
      answers[at] = answer
      bury()
    end
  elseif kind == 'w' then
    most = SWEPT_ON_PURPOSE
    answers[at] = 'w'
  else
    answers[at] = OTHERS[kind]()
  end
end
if nextDue <= now or most == SWEPT_ON_PURPOSE then sweep(most) end
for _, which in ipairs(hashes) do wrote = wrote or which.dirty end
if wrote then put(requests.young, sender, ARGV[2]) end
finish()
local remaining = text(nextDue < HUGE and max(0, nextDue - now) or HUGE)
if nextDue ~= expected then call('PUBLISH', uid .. ':due', remaining) end
answers[1] = remaining
return answers
`

export interface Script {
  readonly text: string
  /** What Redis calls it by. */
  readonly digest: string
}

/**
 * The script for these limits. One that `shrinks` may run where Redis' memory is full: to be used
 * for calls that make room, or need none.
 */
export function scriptFor(limits: Limits, shrinks: boolean): Script {
  const names = ['claimsPerKey', 'claimsPerLease', 'childrenPerLease', 'leaseDepth'] as const
  const sizes = ['leases', 'page', 'events', 'historyPerKey', 'requests', 'ended'] as const
  const each = [...names, ...sizes].map((name) => `${name} = ${limits[name]}`)
  const settings = `local LIMITS = { ${each.join(', ')}, shown = ${CLAIMS_SHOWN} }`
  const first = shrinks ? '#!lua flags=allow-oom' : '#!lua'
  return scriptOf([first, settings, STATE, BEGIN, LINES, LEASES, CHANGES, READS, MAIN].join('\n'))
}

export function scriptOf(text: string): Script {
  return { text, digest: createHash('sha1').update(text).digest('hex') }
}
