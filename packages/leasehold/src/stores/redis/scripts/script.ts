import { createHash } from 'node:crypto'
import { CLAIMS_SHOWN, type Limits } from '../../../port/index.ts'
import { BEGIN } from './begin.ts'
import { CHANGES } from './changes.ts'
import { CLAIMS } from './claims.ts'
import { LEASES } from './leases.ts'
import { LINES } from './lines.ts'
import { READS } from './reads.ts'
import { REVOKING } from './revoking.ts'
import { STATE } from './state.ts'

/**
 * The arguments of a run: who sends, the number of this run among the sender's, and the calls, each
 * one text: a letter for what it is, and its fields; the first of a change is its request id. The
 * answer is one text too: milliseconds until a lease must be looked at, whose data it is, and an
 * answer each. It is one because arguments and answers are what a run spends much of its time on.
 *
 * A client library may send a run again when its connection broke, though nobody asked it to: what
 * has a number that was seen before is not carried out.
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

/** What is not always needed is made when it first is. */
const BETWEEN = `
}
S.more = setmetatable({}, { __index = function(_, name)
  S.more = {
`

const AFTER = `
  }
  return S.more[name]
end })

local trouble = S.begin()
if trouble then return redis.error_reply(trouble) end
local CHANGES = { C = 'claim', c = 'claim', R = 'release', r = 'release', g = 'grant', u = 'update', v = 'revoke' }
local OTHERS = { n = 'renew', k = 'readKey', p = 'readPrefix', l = 'readLease', a = 'readLeases',
  h = 'readHistory', s = 'standing', f = 'eventsAfter' }
local sender = '\\31' .. ARGV[1]
local all, asked, keys = {}, { sender }, {}
for at = 3, #ARGV do
  local said = ARGV[at]
  local kind = sub(said, 1, 1)
  if CHANGES[kind] then
    local fields = S.fieldsOf(said, kind)
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
  local said = ARGV[at]
  local kind = sub(said, 1, 1)
  local change = CHANGES[kind]
  if change then
    local fields = all[at]
    local request = fields[1]
    local answer = request ~= '' and S.known[request]
    if not answer then
      answer = (S[change] or S.more[change])(fields)
      if request ~= '' then S.remember(request, answer) end
      if S.heirs[1] then S.bury() end
    end
    answers[at] = answer
  elseif kind == 'w' then
    most = 500
    answers[at] = kind
  else
    answers[at] = (S[OTHERS[kind]] or S.more[OTHERS[kind]])(S.fieldsOf(said))
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

/** Keys that nobody claims, of which more are remembered for a while: a reader steps over them. */
const IDLE_MAX = 4096

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
  const settings = `limits = { ${each.join(', ')}, shown = ${CLAIMS_SHOWN}, idle = ${Math.min(limits.idleKeys, IDLE_MAX)} },`
  const first = shrinks ? '#!lua flags=allow-oom' : '#!lua'
  const always = [BEFORE, settings, STATE, BEGIN, LINES, LEASES, CLAIMS]
  return scriptOf([first, ...always, BETWEEN, CHANGES, REVOKING, READS, AFTER].join('\n'))
}

export function scriptOf(text: string): Script {
  return { text, digest: createHash('sha1').update(text).digest('hex') }
}
