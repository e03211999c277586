import { spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { connect } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Clock, LeaseholdError } from 'leasehold/port'

/** A started server exits after this long without a client. */
const UNUSED = '60s'
const START_TIMEOUT_MS = 15_000
const PROBE_EVERY_MS = 50
const PROBE_TIMEOUT_MS = 1000
/** How often to look whether it still listens. */
const LOOK_EVERY_MS = 2000
const HOST = '127.0.0.1'

export interface LocalServerOptions {
  readonly port: number
  /** The folder of the store. Default: in the user's folder for state. */
  readonly data?: string | undefined
  readonly clock: Clock
}

/**
 * The URL of the server on this machine. If none listens, starts one in the background, which exits
 * when nobody uses it. Several agents may start at the same time: one server gets the port, the others
 * exit, and all agents use that one.
 */
export async function localServer({ port, data, clock }: LocalServerOptions): Promise<string> {
  const url = `http://${HOST}:${port}`
  if (await listens(port)) return url
  const folder = data ?? defaultFolder()
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const bin = fileURLToPath(new URL('../../bin/leasehold.js', import.meta.url))
  const args = ['serve', '--store', `file:${folder}`, '--host', HOST, '--port', String(port)]
  const child = spawn(process.execPath, [bin, ...args, '--exit-when-unused', UNUSED], {
    cwd: folder,
    detached: true,
    stdio: 'ignore',
  })
  child.on('error', () => {})
  child.unref()
  const deadline = clock.now() + START_TIMEOUT_MS
  while (clock.now() < deadline) {
    if (await listens(port)) return url
    await new Promise<void>((resolve) => {
      clock.timer(clock.now() + PROBE_EVERY_MS, resolve, true)
    })
  }
  throw new LeaseholdError(
    'timeout',
    `the lease server that was started on ${url} does not listen after ${START_TIMEOUT_MS / 1000} s. Run 'leasehold serve --store file:${folder}' to see why, or name a server with --server`,
  )
}

/** Starts the server again if it has ended, for as long as this process lives. */
export function keepLocalServer(options: LocalServerOptions): void {
  const { clock } = options
  clock.timer(clock.now() + LOOK_EVERY_MS, () => {
    void localServer(options)
      .catch(() => {})
      .then(() => keepLocalServer(options))
  })
}

function defaultFolder(): string {
  const state = process.env['XDG_STATE_HOME'] || join(homedir(), '.local', 'state')
  return join(state, 'leasehold')
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: HOST, port, timeout: PROBE_TIMEOUT_MS })
    const end = (isThere: boolean) => () => {
      socket.destroy()
      resolve(isThere)
    }
    socket.once('connect', end(true)).once('error', end(false)).once('timeout', end(false))
  })
}
