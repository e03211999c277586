import type { McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { SessionOf } from '../agent-session.ts'
import { READS, REPEATABLE, TAKES } from './annotations.ts'
import { convertedOnce } from './converted-once.ts'
import * as schemas from './schemas.ts'
import { runTool } from './tool-runner.ts'

const WHO = {
  title: 'Who holds it',
  description:
    'Look who holds a key or a path, what for and since when, who waits, and who held it before. With prefix: all keys that begin with it. Takes nothing.',
  inputSchema: convertedOnce(
    z.strictObject({
      ...schemas.target,
      prefix: z.string().max(500).optional().describe('The beginning of keys; "" for all.'),
    }),
  ),
  outputSchema: schemas.who,
  annotations: READS,
}

const ANNOUNCE = {
  title: 'Say what I do',
  description:
    'Tell the other agents what you are doing and what you can do. Call it again when it changes. It holds nothing.',
  inputSchema: convertedOnce(
    z.strictObject({
      doing: z.string().trim().min(1).max(500).describe('What you are doing, in one sentence.'),
      paths: schemas.paths.optional(),
      capabilities: z.array(z.string().trim().min(1).max(100)).max(50).optional(),
      agent: schemas.agent,
    }),
  ),
  outputSchema: schemas.announced,
  annotations: REPEATABLE,
}

const AGENTS = {
  title: 'Who else works here',
  description:
    'List the agents of the fleet: what they do, what they hold, and what they wait for.',
  inputSchema: convertedOnce(z.strictObject({})),
  outputSchema: schemas.agents,
  annotations: READS,
}

const ASK_BACK = {
  title: 'Ask for it back',
  description:
    'Ask whoever holds a key or path to give it back soon. Its agent sees your reason with its next answer. Then call acquire and wait: asking gives you no place in the queue.',
  inputSchema: convertedOnce(
    z.strictObject({
      ...schemas.target,
      why: z.string().trim().min(1).max(500).describe('Why you need it, and how soon.'),
      agent: schemas.agent,
    }),
  ),
  outputSchema: schemas.asked,
  annotations: TAKES,
}

export function addFleetTools(server: McpServer, sessionOf: SessionOf): void {
  server.registerTool('who', WHO, (target) =>
    runTool(sessionOf, { reads: true }, async ({ fleet }) => {
      const { more, ...found } = await fleet.who(target)
      const isFree = found.keys.every(({ holders }) => holders.length === 0)
      const next = isFree
        ? 'It is free now; call acquire to take it'
        : 'Call acquire to wait in the queue, or ask_back if it is urgent'
      const advice = `. These are only the first ${found.keys.length} keys: give a longer prefix`
      return { ...found, next: more ? next + advice : next }
    }),
  )
  server.registerTool('announce', ANNOUNCE, (announcement) =>
    runTool(sessionOf, { agent: announcement.agent }, async ({ holds, fleet }) => {
      await fleet.announce(announcement)
      return {
        agent: announcement.agent ?? holds.agent,
        next: 'Others see it with the tool agents',
      }
    }),
  )
  server.registerTool('agents', AGENTS, () =>
    runTool(sessionOf, { reads: true }, async ({ fleet }) => {
      const { agents, more } = await fleet.agents()
      const next = 'Choose work that nobody else does'
      return { agents, next: more ? `${next}. Some holds are missing here: use who, too` : next }
    }),
  )
  server.registerTool('ask_back', ASK_BACK, ({ why, agent, ...target }) =>
    runTool(sessionOf, { agent }, async ({ fleet }) => ({
      asked: await fleet.askBack(target, why, agent),
      next: 'Asked. Call acquire for it now and wait in the queue, or do other work',
    })),
  )
}
