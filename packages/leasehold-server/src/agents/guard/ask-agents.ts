import { connect } from 'node:net'
import type { GuardAnswer, GuardQuestion } from './decide.ts'
import { socketsOf } from './guard-sockets.ts'
import { ancestorsOf } from './processes.ts'

/** How long the answer may take. */
const ANSWER_TIMEOUT_MS = 1500

/**
 * Asks every `leasehold mcp` of the host that this process runs in or under. A host counts as one agent:
 * what one of them allows is allowed. Undefined if there is none.
 */
export async function askAgents(question: GuardQuestion): Promise<GuardAnswer | undefined> {
  const above = await ancestorsOf(process.pid)
  const sockets = socketsOf([process.pid, ...above.map(({ pid }) => pid)])
  let answer: GuardAnswer | undefined
  for (const socket of sockets) {
    answer = await ask(socket, question)
    if (answer.allow) break
  }
  return answer
}

/** The request is written by hand, because loading an HTTP client takes longer than the answer. */
function ask(path: string, question: GuardQuestion): Promise<GuardAnswer> {
  const body = JSON.stringify(question)
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(path, () => {
      socket.write(`POST / HTTP/1.0\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
    })
    socket.setEncoding('utf8').setTimeout(ANSWER_TIMEOUT_MS, () => {
      socket.destroy(new Error('leasehold mcp does not answer'))
    })
    socket.on('data', (chunk: string) => {
      text += chunk
    })
    socket.on('error', reject)
    socket.on('close', () => {
      const [, answer] = text.split('\r\n\r\n')
      if (answer) resolve(JSON.parse(answer) as GuardAnswer)
      else reject(new Error('leasehold mcp does not answer'))
    })
  })
}
