import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statfsSync } from 'node:fs'
import { cpus, release, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { findProgram } from './programs.js'

const PEERS = new URL('../../peers/', import.meta.url)
/** Libraries that the bench uses as dependencies of other libraries. */
const BESIDE = ['async-mutex', 'pg', 'redis']
const POSTGRES = '/usr/lib/postgresql'
/** The type that statfs(2) returns for a file system in memory. */
const TMPFS = 0x01021994
const SAMPLE_MS = 1000

/** Where and when the figures were measured. */
export interface Machine {
  readonly on: string
  /** Ends with `-dirty` if the product or the bench differs from that commit. */
  readonly commit: string
  readonly node: string
  readonly processors: string
  readonly memory: string
  readonly system: string
  /** How many cores other programs used before the suite; 1 is one core. */
  readonly busy?: number
  /** The load average after the suite, mostly from the bench itself. Only in older results. */
  readonly load?: number
  /** The temporary folder is in memory, so a sync costs nothing. */
  readonly tmpfs?: true
  /** The versions of what we compare with. Missing in older results. */
  readonly engines?: Versions
  readonly peers?: Versions
}

export type Versions = Readonly<Record<string, string>>

/** Takes a second, in which nothing may be measured. Call it before a suite. */
export function machine(): Machine {
  const [first] = cpus()
  return {
    on: new Date().toISOString().slice(0, 10),
    commit: commit(),
    node: process.version,
    processors: `${cpus().length} x ${first?.model.trim() ?? 'unknown'}`,
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    system: `Linux ${release().split('-')[0]}`,
    busy: busyCores(),
    ...(statfsSync(tmpdir()).type === TMPFS && { tmpfs: true as const }),
    engines: engineVersions(),
    peers: peerVersions(),
  }
}

/** Not the load average: for minutes that would still contain the previous suite. */
function busyCores(): number {
  const [before, start] = [busyTicks(), performance.now()]
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, SAMPLE_MS)
  // Linux counts a hundred ticks a second.
  const cores = ((busyTicks() - before) * 10) / (performance.now() - start)
  return Math.round(cores * 100) / 100
}

function busyTicks(): number {
  const [line] = readFileSync('/proc/stat', 'utf8').split('\n', 1)
  const [user, nice, system, _idle, _waiting, irq, softirq] = line!
    .split(/\s+/)
    .slice(1)
    .map(Number)
  return user! + nice! + system! + irq! + softirq!
}

/** The bench itself writes the results, so they do not count as changes. */
const SOURCES = [':/packages', ':/bench', ':(top,exclude)bench/results']

function commit(): string {
  const head = outputOf('git', ['rev-parse', '--short', 'HEAD'])
  const changes = outputOf('git', ['status', '--porcelain', '--', ...SOURCES])
  return head === '' ? 'unknown' : changes === '' ? head : `${head}-dirty`
}

/** The versions of the installed engines. */
function engineVersions(): Versions {
  const found = {
    Redis: /v=(\S+)/.exec(outputOf('redis-server', ['--version']))?.[1],
    etcd: /Version: (\S+)/.exec(outputOf('etcd', ['--version']))?.[1],
    PostgreSQL: /\(PostgreSQL\) (\S+)/.exec(outputOf(postgres(), ['--version']))?.[1],
    ZooKeeper: /^\S+ ([\d.]+)/.exec(outputOf('dpkg-query', ['-W', 'zookeeper']))?.[1],
  }
  const known = Object.entries(found).filter((entry): entry is [string, string] => !!entry[1])
  return Object.fromEntries(known)
}

/** The newest version that Debian installed, which is not in `PATH`; else the one in `PATH`. */
function postgres(): string {
  const versions = existsSync(POSTGRES) ? readdirSync(POSTGRES) : []
  const sorted = versions.sort((a, b) => b.localeCompare(a, 'en', { numeric: true }))
  const folders = sorted.map((version) => join(POSTGRES, version, 'bin'))
  return findProgram('postgres', folders) ?? 'postgres'
}

/** The versions of the libraries, by their names in bench/peers. */
function peerVersions(): Versions {
  const { packages } = JSON.parse(readFileSync(new URL('package-lock.json', PEERS), 'utf8'))
  const names = [...Object.keys(packages[''].dependencies), ...BESIDE].sort()
  return Object.fromEntries(names.map((name) => [name, packages[`node_modules/${name}`].version]))
}

/** The output of a program in one line; empty if the program is missing. */
function outputOf(program: string, args: readonly string[]): string {
  try {
    const output = execFileSync(program, args, { encoding: 'utf8', stdio: 'pipe' })
    return output.replaceAll(/\s+/g, ' ').trim()
  } catch {
    return ''
  }
}
