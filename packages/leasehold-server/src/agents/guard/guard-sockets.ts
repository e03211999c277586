import { readdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/**
 * Each `leasehold mcp` listens on a socket, named after its agent host and itself, so that the guards of
 * the same host can ask it. `bin/leasehold-guard.sh` uses the same names.
 */

/** Below the home folder: hosts pass few variables of their environment to MCP servers, but always HOME. */
export function socketFolder(): string {
  return join(homedir(), '.local', 'state', 'leasehold', 'guards')
}

export function socketOf(host: number, pid: number): string {
  return join(socketFolder(), `${host}-${pid}.sock`)
}

/** The sockets under the nearest of these hosts that has any. */
export function socketsOf(hosts: readonly number[]): string[] {
  const names = socketNames().filter(isServed)
  for (const host of hosts) {
    const found = names.filter((name) => name.startsWith(`${host}-`))
    if (found.length > 0) return found.map((name) => join(socketFolder(), name))
  }
  return []
}

/** The sockets of processes that were killed. */
export function deadSockets(): string[] {
  return socketNames()
    .filter((name) => !isServed(name))
    .map((name) => join(socketFolder(), name))
}

function socketNames(): string[] {
  try {
    return readdirSync(socketFolder()).filter((name) => name.endsWith('.sock'))
  } catch {
    return []
  }
}

/** Whether the process that listens on it lives. */
function isServed(name: string): boolean {
  try {
    process.kill(Number(/-(\d+)\.sock$/.exec(name)?.[1]), 0)
    return true
  } catch {
    return false
  }
}
