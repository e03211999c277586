import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { findProgram, KILL_WITH_PARENT } from '../machine/programs.js'

/** A server that we compare with. It has its own port, and its data in a temporary folder. */
export interface Engine {
  readonly port: number
  /** The current process. */
  readonly pid: number
  /** Crashes it, and starts it again with the same data on the same port. */
  restart(): Promise<void>
  end(): Promise<void>
}

export interface EngineSpec {
  readonly program: string
  /** Where to look for the program before `PATH`. */
  readonly folders?: readonly string[]
  /** A file that it needs beside the program. */
  readonly needs?: string
  /** The user that runs it, for a program that refuses root. */
  readonly user?: string
  /** Creates the data that it starts with. */
  readonly prepare?: (folder: string, program: string, user: User, ports: readonly number[]) => void
  readonly args: (folder: string, ports: readonly number[]) => readonly string[]
  /** What it prints when it is ready. If missing, it is ready when it accepts connections. */
  readonly ready?: RegExp
  /** The signal that crashes it; `SIGKILL` by default. */
  readonly crash?: NodeJS.Signals
}

interface User {
  readonly uid?: number
  readonly gid?: number
}

const START_MS = 60_000

/** Redis that syncs every change before it answers, or one that keeps its data in memory only. */
export function startRedis(durable = true): Promise<Engine | undefined> {
  return startEngine('redis-server', /ready to accept connections/i, (folder, [port]) => [
    ...['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder, '--save', ''],
    ...(durable ? ['--appendonly', 'yes', '--appendfsync', 'always'] : []),
  ])
}

/** One etcd. It always syncs every change before it answers. */
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

/** PostgreSQL with its default settings: it syncs every commit before it answers. */
export function startPostgres(): Promise<Engine | undefined> {
  return start({
    program: 'postgres',
    folders: foldersIn('/usr/lib/postgresql').map((folder) => join(folder, 'bin')),
    user: 'postgres',
    prepare: (folder, program, user) => {
      const args = ['-D', join(folder, 'data'), '-U', 'postgres', '-A', 'trust', '-E', 'UTF8']
      execFileSync(join(dirname(program), 'initdb'), [...args, '--no-locale', '--no-sync'], {
        ...user,
        cwd: folder,
        stdio: 'pipe',
      })
    },
    args: (folder, [port]) => [
      ...['-D', join(folder, 'data'), '-p', `${port}`, '-c', 'max_connections=200'],
      ...['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='],
    ],
    ready: /database system is ready to accept connections/,
    crash: 'SIGQUIT',
  })
}

export const postgresUrl = ({ port }: Pick<Engine, 'port'>) =>
  `postgres://postgres@127.0.0.1:${port}/postgres`

const ZOOKEEPER_JAR = '/usr/share/java/zookeeper.jar'

/**
 * One ZooKeeper. It syncs every change before it answers. Its tick is a quarter of the usual one, so
 * that sessions of two seconds are possible.
 */
export function startZookeeper(): Promise<Engine | undefined> {
  return start({
    program: 'java',
    needs: ZOOKEEPER_JAR,
    prepare: (folder, _program, _user, [port]) => {
      mkdirSync(join(folder, 'data'))
      const settings = [`dataDir=${join(folder, 'data')}`, `clientPort=${port}`, 'tickTime=500']
      settings.push('clientPortAddress=127.0.0.1', 'admin.enableServer=false', 'maxClientCnxns=0')
      writeFileSync(join(folder, 'zoo.cfg'), settings.join('\n'))
    },
    args: (folder) => [
      ...['-Xmx1g', '-cp', ZOOKEEPER_JAR],
      ...['org.apache.zookeeper.server.ZooKeeperServerMain', join(folder, 'zoo.cfg')],
    ],
  })
}

/** One NATS server with JetStream on files, which it syncs every two minutes. */
export function startNats(): Promise<Engine | undefined> {
  return start({
    program: 'nats-server',
    folders: ['/usr/sbin'],
    args: (folder, [port]) => ['-a', '127.0.0.1', '-p', `${port}`, '-js', '-sd', folder],
    ready: /Server is ready/,
  })
}

/** Azurite, an emulator of Azure's blob service. */
export function startAzurite(): Promise<Engine | undefined> {
  const script = createRequire(import.meta.url).resolve('azurite/dist/src/blob/main.js')
  return startEngine('node', /successfully listen/, (folder, [port]) => [
    ...[script, '--silent', '--disableTelemetry', '--skipApiVersionCheck'],
    ...['--location', folder, '--blobHost', '127.0.0.1', '--blobPort', `${port}`],
  ])
}

/** Returns `undefined` if the program is not installed. */
export function startEngine(
  program: string,
  ready: RegExp,
  args: EngineSpec['args'],
): Promise<Engine | undefined> {
  return start({ program, ready, args })
}

async function start(spec: EngineSpec): Promise<Engine | undefined> {
  const program = findProgram(spec.program, spec.folders)
  const missing = program === undefined ? spec.program : existsOr(spec.needs)
  if (program === undefined || missing !== undefined) {
    process.stderr.write(`left out: ${missing} is not installed\n`)
    return undefined
  }
  const user = userOf(spec)
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'))
  if (user.uid !== undefined && user.gid !== undefined) chownSync(folder, user.uid, user.gid)
  const ports = [await freePort(), await freePort()]
  spec.prepare?.(folder, program, user, ports)
  const engine = new StartedEngine(spec, program, user, folder, ports)
  await engine.run()
  return engine
}

class StartedEngine implements Engine {
  readonly #spec: EngineSpec
  readonly #program: string
  readonly #user: User
  readonly #folder: string
  readonly #ports: readonly number[]
  #child: ChildProcess | undefined = undefined
  readonly #lastResort = () => this.#child?.kill('SIGKILL')

  constructor(
    spec: EngineSpec,
    program: string,
    user: User,
    folder: string,
    ports: readonly number[],
  ) {
    this.#spec = spec
    this.#program = program
    this.#user = user
    this.#folder = folder
    this.#ports = ports
    process.once('exit', this.#lastResort)
  }

  get port(): number {
    return this.#ports[0]!
  }

  get pid(): number {
    return this.#child!.pid!
  }

  async run(): Promise<void> {
    const { args, ready } = this.#spec
    const command = [...KILL_WITH_PARENT, this.#program, ...args(this.#folder, this.#ports)]
    const child = spawn(command[0]!, command.slice(1), {
      ...this.#user,
      cwd: this.#folder,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    let output = ''
    const ended = new Promise<never>((_, reject) => {
      const fail = () => reject(new Error(`${this.#program} does not start:\n${output}`))
      child.once('exit', fail)
      setTimeout(fail, START_MS).unref()
    })
    const printedReady = new Promise<void>((resolve) => {
      const receive = (chunk: Buffer) => {
        output = (output + chunk).slice(-10_000)
        if (ready?.test(output)) resolve()
      }
      child.stdout.on('data', receive)
      child.stderr.on('data', receive)
    })
    await Promise.race([ready ? printedReady : this.#acceptsConnections(), ended])
    ended.catch(() => {})
  }

  async restart(): Promise<void> {
    await this.#kill()
    await this.run()
  }

  async end(): Promise<void> {
    await this.#kill()
    process.off('exit', this.#lastResort)
    rmSync(this.#folder, { recursive: true, maxRetries: 20, retryDelay: 50 })
  }

  async #kill(): Promise<void> {
    const ended = once(this.#child!, 'exit')
    this.#child!.kill(this.#spec.crash ?? 'SIGKILL')
    await ended
  }

  async #acceptsConnections(): Promise<void> {
    for (;;) {
      const socket = connect(this.port, '127.0.0.1')
      const accepted = once(socket, 'connect').then(
        () => true,
        () => false,
      )
      const isAccepted = await accepted
      socket.destroy()
      if (isAccepted) return
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

function existsOr(file: string | undefined): string | undefined {
  return file === undefined || existsSync(file) ? undefined : file
}

/** The folders in a folder, the newest version first; none if the folder is missing. */
function foldersIn(folder: string): string[] {
  if (!existsSync(folder)) return []
  const names = readdirSync(folder).sort((a, b) => b.localeCompare(a, 'en', { numeric: true }))
  return names.map((name) => join(folder, name))
}

/** Only root can change the user, and only root needs to. */
function userOf({ user }: EngineSpec): User {
  if (user === undefined || process.getuid?.() !== 0) return {}
  const id = (flag: string) => Number(execFileSync('id', [flag, user], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

/** A free port of the loopback address. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address ? address.port : 0
}
