import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { WebSocket } from 'ws'
import { freePort } from '../../../engines/start.js'
import { KILL_WITH_PARENT } from '../../../machine/programs.js'

const SERVER = new URL('../../../../../packages/leasehold-server/bin/leasehold.js', import.meta.url)
const ECHO = new URL('./echo.js', import.meta.url)

/** A separate process until `end` is called, and its address. */
export interface Started {
  readonly url: string
  readonly port: number
  readonly pid: number
  end(): Promise<void>
}

export interface StartedServer extends Started {
  /** Kills the process without cleanup, and restarts it with the same data at the same address. */
  restart(): Promise<void>
}

/** A server on its own store, or on the engine at an address, which others may share. */
export async function startServer(
  kind: 'file' | 'memory' | `${string}://${string}`,
): Promise<StartedServer> {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'))
  const store = kind === 'file' ? `file:${folder}` : kind === 'memory' ? 'memory:' : kind
  const args = ['serve', '--store', store, '--port', String(await freePort())]
  let started = await start(SERVER, args)
  return {
    url: started.url,
    port: started.port,
    get pid() {
      return started.pid
    },
    restart: async () => {
      await started.end('SIGKILL')
      started = await start(SERVER, args)
    },
    end: async () => {
      await started.end('SIGTERM')
      rmSync(folder, { recursive: true })
    },
  }
}

/** The limit: sends frames to a process that sends them back. */
export interface Echo {
  /** Fulfilled when the frame has returned. */
  send(frame: string): Promise<void>
  end(): Promise<void>
}

/** A process that sends back every frame that it gets. */
export function startEchoServer(): Promise<Started> {
  return start(ECHO, [])
}

export async function startEcho(): Promise<Echo> {
  const { url, end } = await startEchoServer()
  const socket = new WebSocket(url.replace('http', 'ws'), { perMessageDeflate: false })
  await once(socket, 'open')
  let back = () => {}
  socket.on('message', () => back())
  return {
    send: (frame) =>
      new Promise((resolve) => {
        back = resolve
        socket.send(frame)
      }),
    end: async () => {
      socket.terminate()
      await end()
    },
  }
}

interface Process extends Started {
  end(signal?: NodeJS.Signals): Promise<void>
}

async function start(program: URL, args: readonly string[]): Promise<Process> {
  const command = [...KILL_WITH_PARENT, process.execPath, fileURLToPath(program), ...args]
  const child = spawn(command[0]!, command.slice(1), { stdio: ['ignore', 'pipe', 'inherit'] })
  const lastResort = () => child.kill('SIGKILL')
  process.once('exit', lastResort)
  const died = once(child, 'exit').then(() => {
    throw new Error(`${command.join(' ')} ended before it listened`)
  })
  const [text] = await Promise.race([once(child.stdout, 'data'), died])
  died.catch(() => {})
  const end = async (signal: NodeJS.Signals = 'SIGTERM') => {
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
    process.off('exit', lastResort)
  }
  const url = /http:\S+/.exec(String(text))![0]
  return { url, port: Number(new URL(url).port), pid: child.pid!, end }
}
