import { readFileSync } from 'node:fs'
import { type Cpu, type Row, versus } from './rows.js'

/** Somebody who does the thing that is measured. */
export interface Contestant {
  readonly name: string
  /** Does it once and gives the figure; `count` is how many of what is counted that were. */
  run(): Promise<{ readonly value: number; readonly count?: number }>
  /** The processes of its server, whose processor time is counted too. */
  readonly pids?: readonly number[] | undefined
}

export interface ContestOptions {
  readonly name: string
  readonly unit: string
  readonly better: 'more' | 'less'
  readonly ours: Contestant
  /** With the least ratio that was asked for against it; or `limit`, a bound that nobody can pass. */
  readonly peers: readonly (Contestant & {
    readonly goal?: number | undefined
    readonly limit?: true | undefined
  })[]
  /** 5 if not given, after one that is not counted. */
  readonly rounds?: number | undefined
}

interface Measured {
  readonly values: number[]
  readonly cpu: Cpu[]
}

/**
 * Lets all take turns, so that what else the machine does hits all alike, and compares ours with
 * each of the others, round by round.
 */
export async function contest(options: ContestOptions): Promise<Row[]> {
  const { name, unit, better, ours, peers, rounds = 5 } = options
  const all = [ours, ...peers]
  const measured = all.map((): Measured => ({ values: [], cpu: [] }))
  for (let round = 0; round <= rounds; round++) {
    process.stderr.write(`  ${name}: round ${round} of ${rounds}\n`)
    for (const [at, contestant] of all.entries()) {
      const { value, cpu } = await once(contestant)
      // The first round is only to warm up.
      if (round === 0) continue
      measured[at]!.values.push(value)
      if (cpu) measured[at]!.cpu.push(cpu)
    }
  }
  const [mine, ...theirs] = measured
  return peers.map((peer, at) =>
    versus(name, mine!.values, theirs[at]!.values, {
      unit,
      better,
      peerName: peer.name,
      goal: peer.goal,
      limit: peer.limit,
      cpu: cpuOf(mine!, theirs[at]!),
    }),
  )
}

async function once({ run, pids = [] }: Contestant): Promise<{ value: number; cpu?: Cpu }> {
  const before = pids.map(cpuTime)
  const start = process.cpuUsage()
  const { value, count } = await run()
  if (count === undefined) return { value }
  const { user, system } = process.cpuUsage(start)
  const server = pids.reduce((sum, pid, at) => sum + cpuTime(pid) - before[at]!, 0)
  return { value, cpu: { client: (user + system) / count, server: server / count } }
}

function cpuOf(mine: Measured, theirs: Measured): Row['cpu'] {
  const average = ({ cpu }: Measured): Cpu | undefined => {
    if (cpu.length === 0) return undefined
    const mean = (of: keyof Cpu) => cpu.reduce((sum, one) => sum + one[of], 0) / cpu.length
    return { client: mean('client'), server: mean('server') }
  }
  const ours = average(mine)
  return ours && { ours, peer: average(theirs) }
}

/** Microseconds of processor time that a process has had; the kernel counts in hundredths of a second. */
function cpuTime(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10_000
}
