import { chmodSync, lstatSync, mkdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'

/** A question of a guard and its answer are one line of JSON each. */
export const LINE_MAX = 1 << 16

/** What an agent is about to edit. */
export interface GuardQuestion {
  /** Files, absolute or from `folder`. */
  readonly paths: readonly string[]
  readonly folder: string
  /** Takes what is free. */
  readonly take: boolean
}

export interface GuardAnswer {
  readonly allow: boolean
  /** Why it is denied, or what was taken. */
  readonly text?: string | undefined
}

/** The socket of the `leasehold mcp` that this agent host has started. */
export function socketOf(host: number): string {
  return join(folder(), `${host}.sock`)
}

/** A folder that only this user can enter. */
function folder(): string {
  const given = process.env['XDG_RUNTIME_DIR']
  return given ? join(given, 'leasehold') : join(tmpdir(), `leasehold-${userInfo().uid}`)
}

/** Whether nobody else can have put a socket there. */
export function isOwnFolder(): boolean {
  const found = lstatSync(folder(), { throwIfNoEntry: false })
  return found?.isDirectory() === true && found.uid === userInfo().uid && (found.mode & 0o77) === 0
}

/**
 * Answers the guards of an agent host until the process ends. The guard of an edit starts and ends
 * within milliseconds: this process is already connected, and knows what its agent holds.
 */
export function answerGuards(
  host: number,
  decide: (question: GuardQuestion) => Promise<GuardAnswer>,
): { close(): Promise<void> } {
  const path = socketOf(host)
  mkdirSync(folder(), { recursive: true, mode: 0o700 })
  if (!isOwnFolder()) return { close: async () => {} }
  const server = createServer((socket) => answerOne(socket, decide))
  // Without it the agent still works; its guards then ask the lease server.
  server.on('error', () => {})
  const begun = rm(path, { force: true }).then(() => {
    server.listen(path, () => chmodSync(path, 0o600))
    server.unref()
  })
  return {
    close: async () => {
      await begun.catch(() => {})
      server.close()
      await rm(path, { force: true })
    },
  }
}

function answerOne(
  socket: Socket,
  decide: (question: GuardQuestion) => Promise<GuardAnswer>,
): void {
  let text = ''
  socket.setEncoding('utf8').on('error', () => {})
  socket.on('data', (chunk: string) => {
    text += chunk
    if (text.length > LINE_MAX) socket.destroy()
    else if (text.endsWith('\n')) void reply(socket, text, decide)
  })
}

async function reply(
  socket: Socket,
  text: string,
  decide: (question: GuardQuestion) => Promise<GuardAnswer>,
): Promise<void> {
  try {
    socket.end(`${JSON.stringify(await decide(JSON.parse(text)))}\n`)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    socket.end(`${JSON.stringify({ allow: true, text: `could not check: ${reason}` })}\n`)
  }
}
