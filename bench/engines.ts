import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'

/** Another server, to be compared with: on a port of its own, with its data in a temporary folder. */
export interface Engine {
  readonly port: number
  readonly pid: number
  end(): Promise<void>
}

/** Redis that has every change on the disk before it answers, or one that keeps it in memory only. */
export function startRedis(durable = true): Promise<Engine | undefined> {
  return startEngine('redis-server', /ready to accept connections/i, (folder, [port]) => [
    ...['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder, '--save', ''],
    ...(durable ? ['--appendonly', 'yes', '--appendfsync', 'always'] : []),
  ])
}

/** One etcd, which has every change on the disk before it answers, as it always does. */
export function startEtcd(): Promise<Engine | undefined> {
  return startEngine('etcd', /ready to serve client requests|serving client/i, (folder, ports) => {
    const [client, peer] = ports.map((port) => `http://127.0.0.1:${port}`)
    return [
      ...['--name', 'bench', '--data-dir', join(folder, 'data'), '--log-level', 'info'],
      ...['--listen-client-urls', client!, '--advertise-client-urls', client!],
      ...['--listen-peer-urls', peer!, '--initial-advertise-peer-urls', peer!],
      ...['--initial-cluster', `bench=${peer}`],
    ]
  })
}

/** `undefined` where the program is not on this machine. */
export async function startEngine(
  program: string,
  ready: RegExp,
  args: (folder: string, ports: readonly number[]) => readonly string[],
): Promise<Engine | undefined> {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  if (!folders.some((folder) => existsSync(join(folder, program)))) {
    process.stderr.write(`left out: ${program} is not on this machine\n`)
    return undefined
  }
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'))
  const ports = [await freePort(), await freePort()]
  const child = spawn(program, args(folder, ports), { stdio: ['ignore', 'pipe', 'pipe'] })
  process.once('exit', () => child.kill('SIGKILL'))
  await new Promise<void>((resolve, reject) => {
    let said = ''
    const hear = (text: Buffer) => {
      said = (said + text).slice(-10_000)
      if (ready.test(said)) resolve()
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.once('exit', () => reject(new Error(`${program} does not start:\n${said}`)))
  })
  return {
    port: ports[0]!,
    pid: child.pid!,
    end: async () => {
      child.kill('SIGKILL')
      await once(child, 'exit')
      rmSync(folder, { recursive: true })
    },
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address ? address.port : 0
}
