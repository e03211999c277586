import type { McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { SessionOf } from '../agent-session.ts'
import { REPEATABLE, TAKES } from './annotations.ts'
import { outcomeAnswer } from './answers.ts'
import { convertedOnce } from './converted-once.ts'
import * as schemas from './schemas.ts'
import { runTool, waiting } from './tool-runner.ts'

const CLAIM_NEXT = {
  title: 'Take the next free task',
  description:
    'Take the first task of a list that is free and not done. No two agents ever get the same one. When you have finished it, call release with done: true; if you cannot finish it, call release without it.',
  inputSchema: convertedOnce(
    z.strictObject({
      keys: schemas.tasks,
      capability: schemas.capability,
      purpose: schemas.purpose.optional(),
      agent: schemas.agent,
    }),
  ),
  outputSchema: schemas.outcome,
  annotations: TAKES,
}

const ONCE = {
  title: 'Do something once',
  description:
    'For something that must happen once in the whole fleet, such as a migration. Answers "done" with the result if it was done, "held" if it is yours to do now (then call release with done: true and a result), or "waiting" while another agent does it.',
  inputSchema: convertedOnce(
    z.strictObject({
      name: z.string().trim().min(1).max(400).describe('What is done, such as "migrate/2026-11".'),
      wait: schemas.wait,
      purpose: schemas.purpose.optional(),
      agent: schemas.agent,
    }),
  ),
  outputSchema: schemas.outcome,
  annotations: REPEATABLE,
}

const TAKE = {
  title: 'Take from a pool',
  description:
    'Take a resource from a pool of equal ones: a port, a GPU, a test device. Answers "held" with the names in resources, or "waiting". Release it when you are finished.',
  inputSchema: convertedOnce(
    z.strictObject({
      pool: z.string().trim().min(1).max(100).describe('The name of the pool, such as "ports".'),
      where: schemas.where,
      count: z
        .number()
        .int()
        .min(1)
        .max(100)
        .optional()
        .describe('How many, all or none. 1 if not given.'),
      resources: schemas.resources,
      wait: schemas.wait,
      purpose: schemas.purpose,
      agent: schemas.agent,
    }),
  ),
  outputSchema: schemas.outcome,
  annotations: TAKES,
}

export function addTaskTools(server: McpServer, sessionOf: SessionOf): void {
  server.registerTool(
    'claim_next',
    CLAIM_NEXT,
    ({ keys, capability, purpose = 'doing this task', agent }, context) =>
      runTool(sessionOf, { agent }, async ({ holds, fleet }) => {
        const tasks = keys.map((task) => (typeof task === 'string' ? { key: task } : task))
        const capabilities = capability ?? fleet.capabilitiesOf(agent)
        const { signal } = context.mcpReq
        const wanted = { purpose, agent, capabilities }
        return outcomeAnswer(await holds.claimNext(tasks, wanted, { signal }))
      }),
  )
  server.registerTool('once', ONCE, ({ name, wait, purpose = 'doing it once', agent }, context) =>
    runTool(sessionOf, { agent }, async ({ holds }) =>
      outcomeAnswer(await holds.once(name, { purpose, agent }, waiting(wait, context))),
    ),
  )
  server.registerTool('take', TAKE, ({ pool, wait, ...wanted }, context) =>
    runTool(sessionOf, { agent: wanted.agent }, async ({ holds }) =>
      outcomeAnswer(await holds.take(pool, wanted, waiting(wait, context))),
    ),
  )
}
