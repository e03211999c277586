import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { WebSocket } from 'ws'

const SERVER = new URL('../../../packages/leasehold-server/bin/leasehold.js', import.meta.url)
const ECHO = new URL('./echo.js', import.meta.url)

/** A process of its own, until `end` is called, and where it listens. */
export interface Started {
  readonly url: string
  readonly pid: number
  end(): Promise<void>
}

export async function startServer(kind: 'file' | 'memory'): Promise<Started> {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'))
  const store = kind === 'file' ? `file:${folder}` : 'memory:'
  const started = await start(SERVER, ['serve', '--store', store, '--port', '0'])
  const end = async () => {
    await started.end()
    rmSync(folder, { recursive: true })
  }
  return { ...started, end }
}

/** The limit: sends frames to a process that sends them back. */
export interface Echo {
  /** Fulfilled when the frame has come back. */
  send(frame: string): Promise<void>
  end(): Promise<void>
}

export async function startEcho(): Promise<Echo> {
  const { url, end } = await start(ECHO, [])
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

async function start(program: URL, args: readonly string[]): Promise<Started> {
  const child = spawn(process.execPath, [fileURLToPath(program), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [text] = await once(child.stdout, 'data')
  const end = async () => {
    child.kill('SIGTERM')
    await once(child, 'exit')
  }
  return { url: /http:\S+/.exec(String(text))![0], pid: child.pid!, end }
}
