import { resolve as resolvePath } from 'node:path'
import { Leasehold } from 'leasehold'
import { milliseconds, systemClock, systemRandom } from 'leasehold/port'
import { answerGuards } from '../../agents/guard/answer-guards.ts'
import { decide } from '../../agents/guard/decide.ts'
import { hostOf } from '../../agents/guard/processes.ts'
import {
  AgentHolds,
  type AgentSession,
  DEFAULT_CEILINGS,
  Fleet,
  idleLimit,
} from '../../agents/index.ts'
import { keepLocalServer, localServer } from '../../agents/local-server.ts'
import { serveAgents } from '../../agents/mcp/stdio.ts'
import { packageVersion } from '../../config/index.ts'
import { openRemote } from '../connection.ts'
import { integerOf } from '../number-options.ts'
import type { McpFlags } from './mcp.ts'

/** How often the parent process is checked. */
const PARENT_EVERY_MS = 250
/** How long the releases at the end may take. */
const LAST_RELEASES_MS = 500

/** Serves agents until the client is gone. */
export async function serveMcp(flags: McpFlags): Promise<void> {
  // Before anything slow, so that an end during the start is noticed.
  const ended = endOfClient()
  const ceilings = {
    ...DEFAULT_CEILINGS,
    maxHold: milliseconds(flags.maxHold as '8h', '--max-hold'),
    idle: idleLimit(flags.idle, '--idle'),
  }
  const clock = systemClock
  const random = systemRandom
  const isGiven = flags.server ?? process.env['LEASEHOLD_URL']
  const port = integerOf('--port', flags.port, 1)
  const local = { port, data: flags.data, clock }
  const server = isGiven || (await localServer(local))
  const { store } = await openRemote({ ...flags, server }, true)
  if (!isGiven) keepLocalServer(local)
  const agent = flags.agent ?? (process.env['LEASEHOLD_AGENT'] || `${folderName()}-${process.pid}`)
  const leasehold = await Leasehold.open(store, { holder: agent, timeout: flags.timeout as '5s' })
  const paths = { folder: process.cwd(), repository: flags.repository }
  const holds = new AgentHolds({ leasehold, store, clock, random, agent, paths, ceilings })
  const fleet = new Fleet({ leasehold, store, random, clock }, holds)
  const breaksFreely = flags.allowBreak
  const session = { holds, fleet }
  serveAgents({ session, version: packageVersion(), breaksFreely })
  const guards = await answerGuardsOf(session)
  await ended
  guards.close()
  // The server frees tied leases when the connection closes, so this need not succeed.
  clock.timer(clock.now() + LAST_RELEASES_MS, () => process.exit(), true)
  await leasehold.close().catch(() => {})
  await store.close().catch(() => {})
  process.exit()
}

/** Lets the guards of the same agent host ask here. */
async function answerGuardsOf(session: AgentSession): Promise<{ close(): void }> {
  const host = await hostOf(process.pid)
  if (host === undefined) return { close: () => {} }
  return answerGuards(host, (question) => {
    const paths = question.paths.map((path) => resolvePath(question.folder, path))
    return decide(session, { ...question, paths })
  })
}

/** Fulfilled when the client is gone: its end of the pipe, a signal, or another parent process. */
function endOfClient(): Promise<void> {
  const parent = process.ppid
  return new Promise((resolve) => {
    const end = () => resolve()
    process.stdin.once('end', end).once('close', end).once('error', end)
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, end)
    const look = () => {
      if (process.ppid !== parent) end()
      else systemClock.timer(systemClock.now() + PARENT_EVERY_MS, look)
    }
    look()
  })
}

function folderName(): string {
  return process.cwd().split(/[\\/]/).pop() || 'agent'
}
