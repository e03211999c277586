import type { GuardAnswer, GuardQuestion } from './decide.ts'
import { editedPaths } from './edited-paths.ts'

/** What a host passes to a hook that runs before a tool. */
export interface HookInput {
  readonly cwd?: string | undefined
  readonly tool_input?: unknown
}

/** What a hook asks before an edit. */
export function questionOf({ cwd, tool_input }: HookInput, take: boolean): GuardQuestion {
  return { paths: editedPaths(tool_input), folder: cwd ?? process.cwd(), take }
}

/** Claude Code and Codex read a decision from standard output. Nothing means that it is allowed. */
export function hookOutput({ allow, text }: GuardAnswer): string {
  if (allow && text === undefined) return ''
  const hookEventName = 'PreToolUse'
  const output = allow
    ? { systemMessage: text, hookSpecificOutput: { hookEventName, additionalContext: text } }
    : {
        hookSpecificOutput: {
          hookEventName,
          permissionDecision: 'deny',
          permissionDecisionReason: text,
        },
      }
  return `${JSON.stringify(output)}\n`
}

/** Whoever cannot check an edit allows it, with a warning. */
export function notChecked(reason: string): GuardAnswer {
  return {
    allow: true,
    text: `leasehold guard: the edit was not checked, because the lease server cannot be reached (${reason})`,
  }
}
