import type { ServerContext } from '@modelcontextprotocol/server'
import { type AgentHolds, WAIT_MAX_MS } from '../agent-holds.ts'
import type { AgentSession, Caller, SessionOf } from '../agent-session.ts'
import type { Waiting } from '../hold-requests.ts'
import { answer, failure, type ToolResult } from './answers.ts'

const WAIT_DEFAULT_S = 20

/** Finds the session of the caller, runs a tool, and adds the notices to its answer. */
export async function runTool(
  sessionOf: SessionOf,
  caller: Caller,
  work: (session: AgentSession) => Promise<object>,
): Promise<ToolResult> {
  try {
    const session = await sessionOf(caller)
    return await runAs(session.holds, () => work(session))
  } catch (error) {
    return failure(error)
  }
}

export async function runAs(holds: AgentHolds, work: () => Promise<object>): Promise<ToolResult> {
  holds.touch()
  return answer(holds, await work())
}

/** How long a call may wait, and where its progress goes if the client asked for it. */
export function waiting(seconds: number | undefined, { mcpReq }: ServerContext): Waiting {
  const wait = Math.min((seconds ?? WAIT_DEFAULT_S) * 1000, WAIT_MAX_MS)
  const progressToken = mcpReq._meta?.progressToken
  let progress = 0
  return {
    wait,
    signal: mcpReq.signal,
    ...(progressToken !== undefined && {
      progress: (message: string) => {
        progress++
        mcpReq
          .notify({
            method: 'notifications/progress',
            params: { progressToken, progress, message },
          })
          .catch(() => {})
      },
    }),
  }
}
