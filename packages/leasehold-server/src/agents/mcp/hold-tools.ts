import type { McpServer } from '@modelcontextprotocol/server'
import { LeaseholdError } from 'leasehold/port'
import { z } from 'zod'
import type { SessionOf } from '../agent-session.ts'
import { READS, REPEATABLE, TAKES } from './annotations.ts'
import { outcomeAnswer } from './answers.ts'
import { convertedOnce } from './converted-once.ts'
import * as schemas from './schemas.ts'
import { runTool, waiting } from './tool-runner.ts'

const ACQUIRE = {
  title: 'Take keys or files',
  description:
    'Take files, folders or named things for yourself before you change or use them. All of them or none, in one step. Returns state "held" with a handle, or "waiting" with a handle, who is ahead, why and since when: you are in the queue and keep your place. Give keys or paths or both.',
  inputSchema: convertedOnce(
    z.strictObject({
      keys: schemas.keys.optional(),
      paths: schemas.paths.optional(),
      mode: z
        .enum(['exclusive', 'shared'])
        .optional()
        .describe(
          '"exclusive" (default) to change it; "shared" to read it while nobody changes it.',
        ),
      wait: schemas.wait,
      queue: z
        .boolean()
        .optional()
        .describe('false: if it is not free, answer "busy" at once and do not stay in the queue.'),
      purpose: schemas.purpose,
      agent: schemas.agent,
    }),
  ),
  outputSchema: schemas.outcome,
  annotations: TAKES,
}

const WAIT = {
  title: 'Wait for a hold',
  description:
    'Wait longer for a hold whose state is "waiting". You keep your place in the queue between calls.',
  inputSchema: convertedOnce(z.strictObject({ hold: schemas.hold, wait: schemas.wait })),
  outputSchema: schemas.outcome,
  annotations: REPEATABLE,
}

const RELEASE = {
  title: 'Release a hold',
  description:
    'Give a hold back, or leave its queue. Give hold, or all: true for everything that you took; if you give your name in agent, give it here too. For a task from claim_next or once that you finished, add done: true, so that nobody does it again.',
  inputSchema: convertedOnce(
    z.strictObject({
      hold: schemas.hold.optional(),
      all: z.literal(true).optional(),
      agent: schemas.agent,
      done: z.boolean().optional().describe('The task is done: nobody gets it again.'),
      result: z
        .unknown()
        .optional()
        .describe('With done: a small JSON result that others can read.'),
    }),
  ),
  outputSchema: schemas.released,
  annotations: REPEATABLE,
}

const MINE = {
  title: 'What I hold',
  description:
    'List what this connection holds, waits for, or has lost and why, with the handles. Call it after your context was compacted, or when you are not sure.',
  inputSchema: convertedOnce(z.strictObject({ agent: schemas.agent })),
  outputSchema: schemas.mine,
  annotations: READS,
}

export function addHoldTools(server: McpServer, sessionOf: SessionOf): void {
  server.registerTool('acquire', ACQUIRE, ({ wait, queue = true, ...wanted }, context) =>
    runTool(sessionOf, { agent: wanted.agent }, async ({ holds }) => {
      const options = waiting(wait, context)
      const acquiring = queue ? holds.acquire(wanted, options) : holds.tryAcquire(wanted, options)
      return outcomeAnswer(await acquiring)
    }),
  )
  server.registerTool('wait', WAIT, ({ hold, wait }, context) =>
    runTool(sessionOf, { hold }, async ({ holds }) =>
      outcomeAnswer(await holds.wait(hold, waiting(wait, context))),
    ),
  )
  server.registerTool('release', RELEASE, ({ hold, all, agent, done, result }) =>
    runTool(sessionOf, { agent, hold }, async ({ holds }) => {
      if ((hold === undefined) === (all === undefined)) {
        throw new LeaseholdError('invalid-argument', 'give either hold or all: true')
      }
      if (all !== undefined && done) {
        throw new LeaseholdError(
          'invalid-argument',
          'done needs the hold of the task: give hold, not all',
        )
      }
      const records =
        hold === undefined
          ? await holds.releaseAll(agent)
          : [await holds.release(hold, done ? { result } : undefined)]
      const released = records.map(({ handle }) => handle)
      return { released, next: releasedText(holds.openCount, all) }
    }),
  )
  server.registerTool('mine', MINE, ({ agent }) =>
    runTool(sessionOf, { agent }, async ({ holds }) => {
      const list = holds.mine(agent).map(({ view }) => view)
      const next =
        list.length === 0
          ? 'You hold nothing'
          : 'Release what you no longer need; do not touch what is waiting or lost'
      return { holds: list, next }
    }),
  )
}

function releasedText(left: number, all: true | undefined): string {
  const text = 'Released. Take it again before you change it again'
  if (all === undefined || left === 0) return text
  return `${text}. Other agents on this connection still have ${left}: mine lists them. Give agent to release those of one`
}
