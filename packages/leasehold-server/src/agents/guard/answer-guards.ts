import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { GuardAnswer, GuardQuestion } from './decide.ts'
import { deadSockets, socketFolder, socketOf } from './guard-sockets.ts'
import { type HookInput, hookOutput, notChecked, questionOf } from './hook.ts'

/** The input of a hook contains the new text of a file. */
const BODY_MAX = 64 << 20

type Decide = (question: GuardQuestion) => Promise<GuardAnswer>

/**
 * Answers the guards of an agent host until it is closed. The guard of an edit starts and ends within
 * milliseconds: this process is already connected, and knows what its agent holds.
 *
 * It speaks HTTP, so that curl can ask: `/hook` takes the input of a hook and answers its output;
 * any other path takes a question and gives the answer, as JSON.
 */
export function answerGuards(host: number, decide: Decide): { close(): void } {
  const path = socketOf(host, process.pid)
  const server = createServer((request, response) => {
    reply(request, response, decide).catch(() => response.destroy())
  })
  // Without a socket the agent still works; its guards then ask the lease server.
  server.on('error', () => {})
  try {
    mkdirSync(socketFolder(), { recursive: true, mode: 0o700 })
    chmodSync(socketFolder(), 0o700)
    for (const dead of deadSockets()) rmSync(dead, { force: true })
    rmSync(path, { force: true })
    server.listen(path).unref()
  } catch {}
  return { close: () => void server.close() }
}

async function reply(
  request: IncomingMessage,
  response: ServerResponse,
  decide: Decide,
): Promise<void> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > BODY_MAX) return void response.writeHead(413).end()
    chunks.push(chunk)
  }
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://guard.invalid')
  const isHook = pathname === '/hook'
  const given = JSON.parse(Buffer.concat(chunks).toString()) as GuardQuestion & HookInput
  const question = isHook ? questionOf(given, searchParams.has('take')) : given
  const answer = await decide(question).catch((error: Error) => notChecked(error.message))
  response.end(isHook ? hookOutput(answer) : JSON.stringify(answer))
}
