import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { findProgram, foldersIn, freePort } from '../../../../leasehold/test/engines/engine.ts'

export const patroni = findProgram('patroni')
/** Consul's shortest session ttl, doubled: Patroni halves its ttl because Consul doubles it. */
export const TTL_S = 20
/** How long one step may take, on a busy machine. */
const STEP_MS = 180_000
const [binaries] = foldersIn('/usr/lib/postgresql').map((folder) => join(folder, 'bin'))

interface Node {
  readonly folder: string
  readonly port: number
  readonly config: string
  patroni: ChildProcess | undefined
}

/** Two PostgreSQL servers whose leader Patroni elects through a Consul API. */
export class PatroniCluster {
  readonly #root = mkdtempSync(join(tmpdir(), 'leasehold-patroni-'))
  readonly #user = postgresUser()
  readonly #nodes: Node[] = []
  /** How often both servers accepted a write at once. */
  twoLeaders = 0
  #samples = 0
  #isSampling = true

  /** `consul` is the port of the API. */
  async start(consul: number): Promise<void> {
    chownSync(this.#root, this.#user.uid, this.#user.gid)
    for (const name of ['n0', 'n1']) {
      const folder = join(this.#root, name)
      mkdirSync(folder)
      chownSync(folder, this.#user.uid, this.#user.gid)
      const [port, rest] = [await freePort(), await freePort()]
      const config = join(folder, 'patroni.json')
      writeFileSync(config, JSON.stringify(configOf(name, folder, port, rest, consul)))
      this.#nodes.push({ folder, port, config, patroni: undefined })
    }
    for (const node of this.#nodes) this.#run(node)
    this.#sample().catch(() => {})
  }

  get samples(): number {
    return this.#samples
  }

  /** The number of the server that accepts writes, as soon as one does. */
  async leader(except?: number): Promise<number> {
    const until = performance.now() + STEP_MS
    while (performance.now() < until) {
      for (const at of this.#nodes.keys()) if (at !== except && (await this.#writes(at))) return at
      await pause(100)
    }
    throw new Error(`no server accepted writes within ${STEP_MS} ms`)
  }

  /** Resolves when the other server follows the leader. */
  async followed(leader: number): Promise<void> {
    const query = `select count(*) from pg_stat_replication where state = 'streaming' and application_name = 'n${1 - leader}'`
    const until = performance.now() + STEP_MS
    while ((await this.#ask(leader, query).catch(() => '0')) !== '1') {
      if (performance.now() > until) throw new Error(`n${1 - leader} did not follow n${leader}`)
      await pause(200)
    }
  }

  /** Kills Patroni and PostgreSQL of one node with SIGKILL, like a crash of its machine. */
  async crash(at: number): Promise<void> {
    const node = this.#nodes[at]!
    const postmaster = postmasterOf(node)
    const child = node.patroni!
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    if (postmaster !== undefined) signalTo(postmaster)
    await ended
  }

  /** Starts a crashed node again, as a new one that copies the data of the leader. */
  restart(at: number): void {
    const node = this.#nodes[at]!
    rmSync(join(node.folder, 'data'), { recursive: true, force: true, maxRetries: 20 })
    this.#run(node)
  }

  async stop(): Promise<void> {
    this.#isSampling = false
    for (const at of this.#nodes.keys()) await this.crash(at).catch(() => {})
    rmSync(this.#root, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }

  /** The end of the log of each node, for a test that fails. */
  logs(): string {
    return this.#nodes
      .map(({ folder }) => join(folder, 'patroni.log'))
      .map((file) => (existsSync(file) ? readFileSync(file, 'utf8').slice(-3000) : ''))
      .join('\n---\n')
  }

  #run(node: Node): void {
    const log = join(node.folder, 'patroni.log')
    const command = `exec ${patroni} ${node.config} >> ${log} 2>&1`
    node.patroni = spawn('sh', ['-c', command], {
      ...this.#user,
      cwd: node.folder,
      stdio: 'ignore',
    })
  }

  /** Writes to both at once, again and again. Only one may accept it. */
  async #sample(): Promise<void> {
    while (this.#isSampling) {
      const both = await Promise.all([this.#writes(0), this.#writes(1)])
      if (both[0] && both[1]) this.twoLeaders++
      if (both[0] || both[1]) this.#samples++
      await pause(50)
    }
  }

  #writes(at: number): Promise<boolean> {
    const change = 'create table if not exists t (n int); insert into t values (1)'
    return this.#ask(at, change).then(
      () => true,
      () => false,
    )
  }

  async #ask(at: number, text: string): Promise<string> {
    const client = new pg.Client({
      ...{ host: '127.0.0.1', port: this.#nodes[at]!.port, user: 'postgres', database: 'postgres' },
      ...{ connectionTimeoutMillis: 1000, query_timeout: 1000 },
    })
    client.on('error', () => {})
    try {
      await client.connect()
      const { rows } = await client.query({ text, rowMode: 'array' })
      return String(rows?.[0]?.[0])
    } finally {
      // A server that is being killed may never close the connection.
      await Promise.race([client.end().catch(() => {}), pause(1000)])
    }
  }
}

function configOf(
  name: string,
  folder: string,
  port: number,
  rest: number,
  consul: number,
): object {
  return {
    scope: 'leasehold',
    name,
    restapi: { listen: `127.0.0.1:${rest}`, connect_address: `127.0.0.1:${rest}` },
    consul: { host: `127.0.0.1:${consul}` },
    bootstrap: {
      // The longest retries that this ttl allows: on a busy machine, a leader must not give up early.
      dcs: { ttl: TTL_S, loop_wait: 1, retry_timeout: 9, maximum_lag_on_failover: 1 << 28 },
      initdb: [{ auth: 'trust' }, { encoding: 'UTF8' }, 'no-sync'],
      pg_hba: ['host all all 127.0.0.1/32 trust', 'host replication all 127.0.0.1/32 trust'],
    },
    postgresql: {
      listen: `127.0.0.1:${port}`,
      connect_address: `127.0.0.1:${port}`,
      data_dir: join(folder, 'data'),
      bin_dir: binaries,
      pgpass: join(folder, 'pgpass'),
      authentication: {
        superuser: { username: 'postgres' },
        replication: { username: 'postgres' },
      },
      parameters: {
        unix_socket_directories: folder,
        shared_buffers: '16MB',
        max_connections: 30,
        synchronous_commit: 'off',
      },
    },
  }
}

function postmasterOf({ folder }: Node): number | undefined {
  const file = join(folder, 'data', 'postmaster.pid')
  return existsSync(file) ? Number(readFileSync(file, 'utf8').split('\n')[0]) : undefined
}

function signalTo(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** PostgreSQL refuses to run as root. */
function postgresUser(): { readonly uid: number; readonly gid: number } {
  if (process.getuid?.() !== 0) return { uid: process.getuid!(), gid: process.getgid!() }
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
