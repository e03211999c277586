import { cpuTime } from '../machine/process-usage.js'
import { type Cpu, type Goal, type Row, roundsWanted, row, versus } from './rows.js'

/** A library, engine or limit that is measured. */
export interface Candidate {
  readonly name: string
  run(): Promise<Run>
  /** The processes of its server. Their processor time, and that of their children, counts too. */
  readonly pids?: readonly number[] | undefined
}

/**
 * The result of one run: one figure, or several. `count` is the number of operations. The processor
 * time of the run is divided by it, unless the run states the processor time of one operation.
 */
export type Run = { readonly count?: number; readonly cpu?: Cpu } & (
  | { readonly value: number }
  | { readonly values: readonly number[] }
)

export type Peer = Candidate & {
  /** The lowest acceptable ratio against it: for the first figure, or for each. */
  readonly goal?: number | readonly (number | undefined)[] | undefined
  /** It is a physical limit, which nobody can pass. */
  readonly limit?: true | undefined
}

export interface Figure {
  readonly name: string
  readonly unit: string
  readonly better: 'more' | 'less'
  /** A goal for our own figure, independent of the peers. It gets its own row. */
  readonly goal?: Goal | undefined
}

interface Field {
  /** If several: each is compared with all peers, and the row's name includes its name. */
  readonly ours: Candidate | readonly Candidate[]
  /** A peer that is not installed is `undefined`. */
  readonly peers: readonly (Peer | undefined)[]
  /** The number of counted rounds; 5 by default. */
  readonly rounds?: number | undefined
  /**
   * Run all candidates at the same time instead of in turns, because they mostly wait. Processor time
   * is not counted then.
   */
  readonly together?: boolean | undefined
  /** Whether to run one uncounted round first; true by default. */
  readonly warmUp?: boolean | undefined
}

export interface CompareOptions extends Figure, Field {}

export interface CompareFiguresOptions extends Field {
  /** Shown as progress. */
  readonly name: string
  readonly figures: readonly Figure[]
}

interface Measured {
  /** One list per round, with all figures. */
  readonly rounds: (readonly number[])[]
  readonly cpu: Cpu[]
}

/** The longest that one run may take. */
const RUN_MS = 180_000

/**
 * Runs all candidates in turns, so that other load on the machine affects all alike. Compares ours
 * with each peer, round by round. Without peers the row has our figure alone.
 */
export function compare({ name, unit, better, goal, ...field }: CompareOptions): Promise<Row[]> {
  return compareFigures({ name, figures: [{ name, unit, better, goal }], ...field })
}

/** Like `compare`, for runs that give several figures. */
export async function compareFigures(options: CompareFiguresOptions): Promise<Row[]> {
  const { figures, together = false } = options
  const ours: readonly Candidate[] = Array.isArray(options.ours) ? options.ours : [options.ours]
  const peers = options.peers.filter((peer) => peer !== undefined)
  const all = [...ours, ...peers]
  const measured = all.map((): Measured => ({ rounds: [], cpu: [] }))
  const rounds = roundsWanted(options.rounds ?? 5)
  for (let round = options.warmUp === false ? 1 : 0; round <= rounds; round++) {
    process.stderr.write(`  ${options.name}: round ${round} of ${rounds}\n`)
    for (const [at, { values, cpu }] of (await turns(all, together, round)).entries()) {
      // Round 0 only warms up.
      if (round === 0) continue
      measured[at]!.rounds.push(values)
      if (cpu && !together) measured[at]!.cpu.push(cpu)
    }
  }
  const theirs = peers.map((peer, at) => ({ peer, measured: measured[ours.length + at]! }))
  return figures.flatMap((figure, at) =>
    ours.flatMap((one, index) => {
      const name = ours.length > 1 ? `${figure.name}, ${one.name}` : figure.name
      return rowsOf({ ...figure, name }, at, measured[index]!, theirs)
    }),
  )
}

/** One row per peer. Our figure also gets a row alone if it has no peers, or a goal. */
function rowsOf(
  { name, unit, better, goal }: Figure,
  at: number,
  mine: Measured,
  theirs: readonly { readonly peer: Peer; readonly measured: Measured }[],
): Row[] {
  const values = ({ rounds }: Measured) => rounds.map((one) => one[at]!)
  const compared = theirs.map(({ peer, measured }) =>
    versus(name, values(mine), values(measured), {
      unit,
      better,
      peerName: peer.name,
      goal: [peer.goal].flat()[at],
      limit: peer.limit,
      cpu: at === 0 ? cpuOf(mine, measured) : undefined,
    }),
  )
  if (theirs.length > 0 && goal === undefined) return compared
  return [{ ...row(name, unit, values(mine), goal), better }, ...compared]
}

type Done = { readonly values: readonly number[]; readonly cpu?: Cpu }

/** Each round starts with another candidate, so that the order favours nobody. */
async function turns(all: readonly Candidate[], together: boolean, round: number): Promise<Done[]> {
  if (together) return Promise.all(all.map(once))
  const done: Done[] = []
  for (let turn = 0; turn < all.length; turn++) {
    const at = (turn + round) % all.length
    done[at] = await once(all[at]!)
  }
  return done
}

async function once(candidate: Candidate): Promise<Done> {
  const spent = measureCpu(candidate.pids)
  const run = await bounded(candidate)
  const values = 'values' in run ? run.values : [run.value]
  if (run.cpu) return { values, cpu: run.cpu }
  return run.count === undefined ? { values } : { values, cpu: spent(run.count) }
}

/** Counts the processor time of this process and of `pids` from now on, per operation. */
export function measureCpu(pids: readonly number[] = []): (count: number) => Cpu {
  const before = pids.map(cpuTime)
  const start = process.cpuUsage()
  return (count) => {
    const { user, system } = process.cpuUsage(start)
    const server = pids.reduce((sum, pid, at) => sum + cpuTime(pid) - before[at]!, 0)
    return { client: (user + system) / count, server: pids.length ? server / count : undefined }
  }
}

async function bounded(candidate: Candidate): Promise<Run> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const fail = () => reject(new Error(`${candidate.name} took longer than ${RUN_MS / 1000} s`))
    timer = setTimeout(fail, RUN_MS)
  })
  try {
    return await Promise.race([candidate.run(), late])
  } finally {
    clearTimeout(timer)
  }
}

function cpuOf(mine: Measured, theirs: Measured): Row['cpu'] {
  const average = ({ cpu }: Measured): Cpu | undefined => {
    if (cpu.length === 0) return undefined
    const mean = (of: keyof Cpu) => cpu.reduce((sum, one) => sum + one[of]!, 0) / cpu.length
    const hasServer = cpu.every(({ server }) => server !== undefined)
    return { client: mean('client'), ...(hasServer && { server: mean('server') }) }
  }
  const ours = average(mine)
  return ours && { ours, peer: average(theirs) }
}
