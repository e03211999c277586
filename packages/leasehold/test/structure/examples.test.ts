import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runNode } from './commands.ts'
import { ROOT, readSource } from './source-files.ts'

/** The expected output of each example, in this order. */
const EXPECTED: Record<string, readonly RegExp[]> = {
  'agent-fleet': [
    /^ada has joined: translate, summarise$/,
    /^bo has joined: summarise$/,
    /^cy has joined: summarise$/,
    /^who can translate: ada$/,
    /^ada has worked on \/summary$/,
    /^bo has worked on \/summary$/,
    /^cy has worked on \/summary$/,
    /^cy has left: critical, HTTP 500; its process and its lease live on$/,
    /^bo has left: killed, long before its lease would run out$/,
    /^left to ask: ada$/,
    /^ada has left: stopped; to pick from: nobody$/,
  ],
  'agent-team': [
    /^eve is killed with kill -9 in the middle of task\/1$/,
    /^dan hangs in the middle of task\/2$/,
    /^cyd is asked: \w+ asked for src\/shared.txt back: "task\/\d needs it"\. Bring your work/,
    /^dan goes on, and is refused: .* no leasehold tool was called for 2s, the idle limit/,
    /^9 tasks, each done once; 13 edits, none while another agent edited the same file$/,
  ],
  'gpu-pool': [
    /^08:00 {2}night .* batch-3 runs on h100-1, token \d+$/,
    /^08:33 {2}pool .* h100-0 night \| h100-1 night$/,
    /^08:33 {2}pool .* waiting: research train, 2 GPU, in about 2\.5 h \(booked\)$/,
    /^08:37 {2}night .* saves its work and goes: research needs the GPU$/,
    /^08:37 {2}research {2}train runs on h100-0 and h100-1, token \d+$/,
    /^10:42 {2}vision .* label runs on a100-0, token \d+$/,
    /^12:13 {2}research {2}train is done$/,
    /^research .* 49 %$/,
  ],
  'leader-failover': [
    /ada .* LEADS in term 1$/,
    /follower .* sees that ada leads in term 1, at http:\/\/ada:8080$/,
    /ada .* is KILLED/,
    /follower .* sees that bea leads in term \d+, at http:\/\/bea:8080$/,
    /ada .* is back, behind cid/,
    /bea .* has ended its work/,
    /follower .* sees that ada leads in term \d+/,
    /follower .* cid, who was before ada in the queue, has made room/,
    /follower .* all have left; writes with an old token: 0$/,
    /store .* history: ada, term 1, expired$/,
    /store .* history: bea, term \d+, released$/,
    /store .* history: ada, term \d+, released$/,
  ],
  'life-of-a-lease': [
    /alice .* asks for reports\/nightly/,
    /alice .* is GRANTED reports\/nightly with token 1$/,
    /report .* accepted "page 1 by alice" with token 1$/,
    /bob .* asks for reports\/nightly/,
    /alice .* renews by a heartbeat/,
    /alice .* is KILLED/,
    /bob .* still waits/,
    /store .* the lease of alice EXPIRED/,
    /bob .* is GRANTED reports\/nightly with token 2$/,
    /bob .* has token 2, which is higher than 1$/,
    /report .* REFUSED "page \d+ by alice" with token 1: it has seen token 2$/,
    /store .* the claim of bob with token 2 is released$/,
    /store .* history: alice, token 1, held for .* s, expired$/,
    /store .* history: bob, token 2, held for .* s, released$/,
  ],
  'late-writer': [
    /^alice looks at her lock: she holds reports\/nightly with token 1$/,
    /^alice is paused, before she could write$/,
    /^the lease of alice has expired: bob holds reports\/nightly with token \d+$/,
    /^bob writes both files$/,
    /^alice wakes up and writes both files, as she was about to$/,
    /^the fence says: token 1 for "reports\/nightly" is stale: it has seen token \d+, so another/,
    /^alice looks at her lock again: lost$/,
    /^unguarded.txt {2}written by alice with token 1$/,
    /^guarded.txt {4}written by bob with token \d+$/,
  ],
  'login-session': [
    /^POST \/login as ada .* 200 hello ada$/,
    /^GET \/ {2}on her phone .* 200 ada, visit 3$/,
    /^GET \/ {2}with a made-up cookie .* 401 please log in$/,
    /^the server is started again$/,
    /^GET \/ {2}on her phone .* 200 ada, visit 14$/,
    /^ended: .* of ada, all sessions of the user were ended$/,
    /^POST \/logout-everywhere .* 200 2 sessions ended$/,
    /^GET \/ {2}on her laptop .* 401 please log in$/,
    /^POST \/login as bob .* 200 hello bob$/,
    /^ended: .* of bob, expired$/,
    /^GET \/ {2}bob, who was idle .* 401 please log in$/,
  ],
  'moving-time': [
    /^after an hour of heartbeats: held, token 1$/,
    /^after a stall of 31 s: lost, expired$/,
    /^the next holder: held, token \d+$/,
  ],
  'run-once': [
    /^one has the lock with token 1; 0 of 4 are sent$/,
    /^one sends the invoice of ada$/,
    /^two and three wait in the queue$/,
    /^one is KILLED in the middle of the job$/,
    /^(two|three) has the lock with token \d+; 1 of 4 are sent$/,
    /^(two|three) sends the invoice of bob$/,
    /^(two|three) has done the job$/,
    /^(two|three) finds the job done by (two|three)$/,
    /^sent, each once: ada, bob, eve, joe$/,
  ],
  'on-a-schedule': [
    /^three workers; one of them runs the job$/,
    /^it is KILLED$/,
    /^another one continues: true$/,
    /^none left out, none doubled: true$/,
  ],
  'own-log': [
    /^the log passes all \d\d cases$/,
    /^ada: held, token \d+$/,
    /^bob: held, token \d+$/,
  ],
  'one-at-a-time': [
    /^one: doing the job with token 1$/,
    /^two: one does run 17 already$/,
    /^three: one does run 17 already$/,
    /^one: done$/,
    /^four: my turn, with token 2$/,
  ],
}

const examples = readdirSync(join(ROOT, 'examples'))
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.slice(0, -'.ts'.length))

describe('examples', () => {
  it('are all run here', () => {
    expect(Object.keys(EXPECTED).sort()).toEqual(examples.sort())
  })

  it.each(examples)('%s says at its head how to run it', (name) => {
    const [head] = readSource(`examples/${name}.ts`).text.split('\n')
    expect(head).toBe(`// Run it: npm run build && node examples/dist/${name}.js`)
  })

  // Several start processes one after another, which takes its time on a busy machine.
  it.concurrent.each(examples)(
    '%s prints the expected output',
    async (name) => {
      const { code, stdout, stderr } = await runNode([`examples/dist/${name}.js`], ROOT)
      expect(stderr).toBe('')
      expect(missing(stdout, EXPECTED[name] ?? [])).toBeUndefined()
      expect(stdout).not.toContain('\x1b')
      expect(code).toBe(0)
    },
    300_000,
  )
})

/** The first pattern without a matching line after the match of the previous pattern. */
function missing(output: string, patterns: readonly RegExp[]): string | undefined {
  const lines = output.split('\n')
  let from = 0
  for (const pattern of patterns) {
    const at = lines.findIndex((line, index) => index >= from && pattern.test(line))
    if (at < 0) return `${pattern} after line ${from} of:\n${output}`
    from = at + 1
  }
  return undefined
}
