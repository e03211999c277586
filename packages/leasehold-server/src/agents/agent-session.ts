import type { AgentHolds } from './agent-holds.ts'
import type { Fleet } from './fleet.ts'

/** What the agents of one connection share: their holds, and their view of the fleet. */
export interface AgentSession {
  readonly holds: AgentHolds
  readonly fleet: Fleet
}

/** Who calls a tool: by name, by the handle of a hold, or only to read. */
export interface Caller {
  readonly agent?: string | undefined
  readonly hold?: string | undefined
  /** The tool takes nothing and shows nothing of the caller's own. */
  readonly reads?: boolean | undefined
}

/** Finds the session of a caller. Over standard input there is one; over HTTP there are many. */
export type SessionOf = (caller: Caller) => AgentSession | Promise<AgentSession>
