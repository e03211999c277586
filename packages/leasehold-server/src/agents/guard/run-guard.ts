import { existsSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { editedPaths } from './edited-paths.ts'
import { type GuardAnswer, type GuardQuestion, isOwnFolder, socketOf } from './guard-socket.ts'
import { ancestorsOf } from './processes.ts'

// This file and what it imports are all that a guard loads: it runs before every edit.

/** How long the answer may take. */
const ANSWER_TIMEOUT_MS = 1500
/** Hosts show the standard error of a command with this exit code to the model. */
const EXIT_DENIED = 2

export interface GuardFlags {
  readonly take: boolean
  /** Files, if they are not in the input of a hook. */
  readonly paths: readonly string[]
}

/** Asks whether an edit is allowed, and answers in the form that the host expects. */
export async function runGuard(
  { take, paths: given }: GuardFlags,
  askServer: (question: GuardQuestion) => Promise<GuardAnswer>,
): Promise<void> {
  const isHook = given.length === 0
  const { cwd, tool_input } = isHook ? hookInput() : { cwd: undefined, tool_input: undefined }
  const paths = isHook ? editedPaths(tool_input) : given
  if (paths.length === 0) return
  const question = { paths, folder: cwd ?? process.cwd(), take }
  const answer = await ask(question, askServer).catch((error: Error) => ({
    allow: true,
    text: `leasehold guard: the edit was not checked, because the lease server cannot be reached (${error.message})`,
  }))
  if (isHook) printForHook(answer)
  else printForShell(answer)
}

/** Asks the `leasehold mcp` of the same host, and without one the lease server. */
async function ask(
  question: GuardQuestion,
  askServer: (question: GuardQuestion) => Promise<GuardAnswer>,
): Promise<GuardAnswer> {
  const hosts = isOwnFolder() ? await ancestorsOf(process.pid) : []
  const host = hosts.find(({ pid }) => existsSync(socketOf(pid)))
  if (host === undefined) return askServer(question)
  return askSocket(socketOf(host.pid), question).catch(() => askServer(question))
}

function askSocket(path: string, question: GuardQuestion): Promise<GuardAnswer> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(path, () => socket.write(`${JSON.stringify(question)}\n`))
    socket.setEncoding('utf8').setTimeout(ANSWER_TIMEOUT_MS, () => {
      socket.destroy(new Error('no answer in time'))
    })
    socket.on('data', (chunk: string) => {
      text += chunk
    })
    socket.on('error', reject)
    socket.on('close', () => {
      if (text.endsWith('\n')) resolve(JSON.parse(text) as GuardAnswer)
      else reject(new Error('no answer'))
    })
  })
}

interface HookInput {
  readonly cwd?: string | undefined
  readonly tool_input?: unknown
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

/** Claude Code and Codex read a decision from standard output. */
function printForHook({ allow, text }: GuardAnswer): void {
  if (allow && text === undefined) return
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
  process.stdout.write(`${JSON.stringify(output)}\n`)
}

function printForShell({ allow, text }: GuardAnswer): void {
  if (text !== undefined) process.stderr.write(`${text}\n`)
  if (!allow) process.exitCode = EXIT_DENIED
}
