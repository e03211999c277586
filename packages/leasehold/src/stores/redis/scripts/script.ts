import { createHash } from 'node:crypto'
import { CLAIMS_SHOWN, type Limits } from '../../../port/index.ts'
import { BEGIN } from './begin.ts'
import { CHANGES } from './changes.ts'
import { CLAIMS } from './claims.ts'
import { LEASES } from './leases.ts'
import { QUEUES } from './queues.ts'
import { READS } from './reads.ts'
import { REVOCATIONS } from './revocations.ts'
import { STATE } from './state.ts'

/**
 * The arguments of a run: the sender, the number of this run of the sender, and the calls. Each call
 * is one string: a letter for its kind, and its fields; the first field of a change is its request
 * id. The answer is one string, too: milliseconds until a lease must be checked, the identity of
 * the data, and one answer per call. It is one string because a run spends much of its time on these.
 *
 * A client library may send a run again after its connection broke, although nobody asked it to. A
 * run with a number that was seen before is not carried out.
 */
const BEFORE = String.raw`
local call, sub, find, match, concat, format =
  redis.call, string.sub, string.find, string.match, table.concat, string.format
local S
S = {
HUGE = math.huge, base = sub(KEYS[1], 1, -5), young = sub(KEYS[1], 1, -5) .. 'requests1',
old = sub(KEYS[1], 1, -5) .. 'requests0',
NEVER = '                 ',
LEASE = '^([^\31]*)\31([^\31]*)\31([^\31]*)\31([^\31]*)\31([^\31]*)\31([^\31]*)\31([^\31]*)\31([^\31]*)\31(.*)$',
`

/** Functions that are not always needed are created on first use. */
const BETWEEN = `
}
S.more = setmetatable({}, { __index = function(_, name)
  S.more = {
`

const AFTER = `
  }
  return S.more[name]
end })

local failure = S.begin()
if failure then return redis.error_reply(failure) end
local CHANGES = { C = 'claim', c = 'claim', R = 'release', r = 'release', g = 'grant', u = 'update', v = 'revoke' }
local OTHERS = { n = 'renew', k = 'readKey', p = 'readPrefix', l = 'readLease', a = 'readLeases',
  h = 'readHistory', s = 'ownClaims', f = 'eventsAfter' }
local sender = '\\31' .. ARGV[1]
local all, asked, keys = {}, { sender }, {}
for at = 3, #ARGV do
  local input = ARGV[at]
  local kind = sub(input, 1, 1)
  if CHANGES[kind] then
    local fields = S.fieldsOf(input, kind)
    all[at] = fields
    if fields[1] ~= '' then asked[#asked + 1] = fields[1] end
    if kind == 'C' or kind == 'R' then keys[#keys + 1] = fields[4] end
  end
end
S.fetch(asked, keys)
local seen = S.known[sender]
if seen and tonumber(seen) >= tonumber(ARGV[2]) then return redis.error_reply('REPEATED') end

local expected, most = S.nextDue, 20
local answers = { '', S.uid }
for at = 3, #ARGV do
  local input = ARGV[at]
  local kind = sub(input, 1, 1)
  local change = CHANGES[kind]
  if change then
    local fields = all[at]
    local request = fields[1]
    local answer = request ~= '' and S.known[request]
    if not answer then
      answer = (S[change] or S.more[change])(fields)
      if request ~= '' then S.remember(request, answer) end
      if S.promoted[1] then S.endOverdue() end
    end
    answers[at] = answer
  elseif kind == 'w' then
    most = 500
    answers[at] = kind
  else
    answers[at] = (S[OTHERS[kind]] or S.more[OTHERS[kind]])(S.fieldsOf(input))
  end
end
if S.nextDue <= S.now or most == 500 then S.more.sweep(most) end
if S.wrote or next(S.changed) or S.asked[1] then S.remember(sender, ARGV[2]) end
S.finish()
local remaining = S.text(S.nextDue < S.HUGE and math.max(0, S.nextDue - S.now) or S.HUGE)
if S.nextDue ~= expected then call('PUBLISH', S.uid .. ':due', remaining) end
answers[1] = remaining
return concat(answers, '\\28')
`

/** More idle keys than this are not kept: a reader must skip them. */
const IDLE_MAX = 4096

export interface Script {
  readonly text: string
  /** Its name in Redis. */
  readonly digest: string
}

/**
 * The script for these limits. One that `shrinks` may run while Redis's memory is full: use it for
 * calls that free memory, or need none.
 */
export function scriptFor(limits: Limits, shrinks: boolean): Script {
  const names = ['claimsPerKey', 'claimsPerLease', 'childrenPerLease', 'leaseDepth'] as const
  const sizes = ['leases', 'page', 'events', 'historyPerKey', 'requests', 'ended'] as const
  const each = [...names, ...sizes].map((name) => `${name} = ${limits[name]}`)
  const settings = `limits = { ${each.join(', ')}, shown = ${CLAIMS_SHOWN}, idle = ${Math.min(limits.idleKeys, IDLE_MAX)} },`
  const first = shrinks ? '#!lua flags=allow-oom' : '#!lua'
  const always = [BEFORE, settings, STATE, BEGIN, QUEUES, LEASES, CLAIMS]
  return scriptOf([first, ...always, BETWEEN, CHANGES, REVOCATIONS, READS, AFTER].join('\n'))
}

export function scriptOf(text: string): Script {
  return { text, digest: createHash('sha1').update(text).digest('hex') }
}
