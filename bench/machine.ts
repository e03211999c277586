import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statfsSync } from 'node:fs'
import { cpus, release, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { findProgram } from './with-us.js'

const PEERS = new URL('../peers/', import.meta.url)
/** Those that the bench uses and that come with another. */
const BESIDE = ['async-mutex', 'pg', 'redis']
const POSTGRES = '/usr/lib/postgresql'
/** As statfs(2) calls a file system that is in memory. */
const TMPFS = 0x01021994
const SAMPLE_MS = 1000

/** Where and when figures were taken. */
export interface Machine {
  readonly on: string
  /** With `-dirty` where the product or the bench was not as in that commit. */
  readonly commit: string
  readonly node: string
  readonly processors: string
  readonly memory: string
  readonly system: string
  /** In how many cores something else was at work, while nothing was measured; 1 is one core. */
  readonly busy?: number
  /** The load average after it, which is mostly of the bench itself: in older results only. */
  readonly load?: number
  /** Data that are said to be on the disk are in memory: a sync of them costs nothing. */
  readonly tmpfs?: true
  /** What it was compared with, and in which versions; not in older results. */
  readonly engines?: Versions
  readonly peers?: Versions
}

export type Versions = Readonly<Record<string, string>>

/** Takes a second, in which nothing must be measured: so ask before a suite. */
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

/** A load average would for minutes tell of the suite before. */
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

/** The results are written by the bench itself, and make nothing dirty. */
const SOURCES = [':/packages', ':/bench', ':(top,exclude)bench/results']

function commit(): string {
  const head = said('git', ['rev-parse', '--short', 'HEAD'])
  const changes = said('git', ['status', '--porcelain', '--', ...SOURCES])
  return head === '' ? 'unknown' : changes === '' ? head : `${head}-dirty`
}

/** Of those that are on this machine. */
function engineVersions(): Versions {
  const found = {
    Redis: /v=(\S+)/.exec(said('redis-server', ['--version']))?.[1],
    etcd: /Version: (\S+)/.exec(said('etcd', ['--version']))?.[1],
    PostgreSQL: /\(PostgreSQL\) (\S+)/.exec(said(postgres(), ['--version']))?.[1],
    ZooKeeper: /^\S+ ([\d.]+)/.exec(said('dpkg-query', ['-W', 'zookeeper']))?.[1],
  }
  const known = Object.entries(found).filter((entry): entry is [string, string] => !!entry[1])
  return Object.fromEntries(known)
}

/** The newest of Debian's, which are not where a shell looks; else the one that is. */
function postgres(): string {
  const versions = existsSync(POSTGRES) ? readdirSync(POSTGRES) : []
  const sorted = versions.sort((a, b) => b.localeCompare(a, 'en', { numeric: true }))
  const folders = sorted.map((version) => join(POSTGRES, version, 'bin'))
  return findProgram('postgres', folders) ?? 'postgres'
}

/** As bench/peers has them, by what they are called there. */
function peerVersions(): Versions {
  const { packages } = JSON.parse(readFileSync(new URL('package-lock.json', PEERS), 'utf8'))
  const names = [...Object.keys(packages[''].dependencies), ...BESIDE].sort()
  return Object.fromEntries(names.map((name) => [name, packages[`node_modules/${name}`].version]))
}

/** What a program says, in one line; nothing where it is not there. */
function said(program: string, args: readonly string[]): string {
  try {
    const told = execFileSync(program, args, { encoding: 'utf8', stdio: 'pipe' })
    return told.replaceAll(/\s+/g, ' ').trim()
  } catch {
    return ''
  }
}
