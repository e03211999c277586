import { readFileSync } from 'node:fs'
import { askAgents } from './ask-agents.ts'
import type { GuardAnswer, GuardQuestion } from './decide.ts'
import { type HookInput, hookOutput, notChecked, questionOf } from './hook.ts'

// This file and what it imports are all that a guard loads: it runs before every edit.

/** Hosts show the standard error of a command with this exit code to the model. */
const EXIT_DENIED = 2

export interface GuardFlags {
  readonly take: boolean
  /** Files, if they are not in the input of a hook. */
  readonly paths: readonly string[]
}

/**
 * Asks the `leasehold mcp` of the same host whether an edit is allowed, and without one the lease server.
 * Answers in the form that the host expects.
 */
export async function runGuard(
  { take, paths }: GuardFlags,
  askServer: (question: GuardQuestion) => Promise<GuardAnswer>,
): Promise<void> {
  const isHook = paths.length === 0
  const question = isHook ? questionOf(hookInput(), take) : { paths, folder: process.cwd(), take }
  if (question.paths.length === 0) return
  const asking = askAgents(question).then((answer) => answer ?? askServer(question))
  const answer = await asking.catch((error: Error) => notChecked(error.message))
  if (isHook) process.stdout.write(hookOutput(answer))
  else printForShell(answer)
}

function hookInput(): HookInput {
  try {
    return JSON.parse(readFileSync(0, 'utf8')) as HookInput
  } catch {
    process.stderr.write(
      'leasehold: standard input is not the JSON of a hook. Give the files as arguments, or use it as a hook\n',
    )
    process.exit(1)
  }
}

function printForShell({ allow, text }: GuardAnswer): void {
  if (text !== undefined) process.stderr.write(`${text}\n`)
  if (!allow) process.exitCode = EXIT_DENIED
}
