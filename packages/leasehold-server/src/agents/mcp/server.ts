import { McpServer } from '@modelcontextprotocol/server'
import type { SessionOf } from '../agent-session.ts'
import { addBreakTool } from './break-tool.ts'
import { addFleetTools } from './fleet-tools.ts'
import { addHoldTools } from './hold-tools.ts'
import { addResources } from './resources.ts'
import { addTaskTools } from './task-tools.ts'

export interface AgentServerOptions {
  readonly sessionOf: SessionOf
  readonly version: string
  /** Lets agents break holds without asking a person. */
  readonly breaksFreely?: boolean | undefined
}

const INSTRUCTIONS = `Several agents work here at the same time. Before you change a file, or use something that only one may use (a port, a branch, an environment), take it with acquire, and release it when you are finished. To choose a task from a list that others work on too, call claim_next. If something is not free, the answer says who has it, why and since when: wait, or do other work. Read the notices of every answer. After your context was compacted, call mine.`

const PROMPT = `You are one of several coding agents that work on the same repository at the same time. Leasehold makes sure that no two of you change the same thing.

1. Call announce with what you are going to do, so that others know.
2. Take a task with claim_next, not by reading a list: two agents that read the same list choose the same task.
3. Before you edit files, call acquire with their paths. Take all that you need at once: whoever holds one thing and waits for another can block everybody.
4. If the answer is "waiting", do not touch it. Call wait, or do something else.
5. Give an honest purpose: others decide by it whether to wait or to ask.
6. Read the notices of every answer. If somebody asks for something back, bring your work to a safe end and release it.
7. If a hold was lost, stop changing it, take it again, and look at what changed.
8. Call release as soon as you are finished; for a task, with done. When your work is over, release all that you took.
9. After a compaction of your context, call mine: it lists what you hold.`

/** An MCP server with the tools, resources and prompt through which agents coordinate. */
export function agentServer({
  sessionOf,
  version,
  breaksFreely = false,
}: AgentServerOptions): McpServer {
  const server = new McpServer(
    { name: 'leasehold', title: 'Leasehold', version },
    { instructions: INSTRUCTIONS, capabilities: { resources: { subscribe: true } } },
  )
  addHoldTools(server, sessionOf)
  addTaskTools(server, sessionOf)
  addFleetTools(server, sessionOf)
  addBreakTool(server, sessionOf, breaksFreely)
  addResources(server, sessionOf)
  server.registerPrompt(
    'work-in-a-fleet',
    {
      title: 'Work in a fleet',
      description: 'How to work beside other agents without overwriting their work.',
    },
    () => ({ messages: [{ role: 'user', content: { type: 'text', text: PROMPT } }] }),
  )
  return server
}
