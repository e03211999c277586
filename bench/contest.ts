import { cpuTime } from './processor.js'
import { type Cpu, type Goal, type Row, roundsWanted, row, versus } from './rows.js'

/** Somebody who does the thing that is measured. */
export interface Contestant {
  readonly name: string
  run(): Promise<Run>
  /** The processes of its server, whose processor time is counted too, with that of their children. */
  readonly pids?: readonly number[] | undefined
}

/**
 * Done once: the figure, or all where one run gives several; `count` is how many of what is counted.
 * The processor time of the whole run is shared among these, unless the run says itself what one took.
 */
export type Run = { readonly count?: number; readonly cpu?: Cpu } & (
  | { readonly value: number }
  | { readonly values: readonly number[] }
)

export type Peer = Contestant & {
  /** The least ratio that was asked for against it, of the first figure or of each. */
  readonly goal?: number | readonly (number | undefined)[] | undefined
  /** It is a bound that nobody can pass. */
  readonly limit?: true | undefined
}

export interface Figure {
  readonly name: string
  readonly unit: string
  readonly better: 'more' | 'less'
  /** What was asked of ours, whatever the peers do: a row of its own says whether that was met. */
  readonly goal?: Goal | undefined
}

interface Field {
  /** Where we are several, each is compared with all peers, and its name is added to the figure's. */
  readonly ours: Contestant | readonly Contestant[]
  /** Those that are not on this machine are `undefined`. */
  readonly peers: readonly (Peer | undefined)[]
  /** 5 if not given, after one that is not counted. */
  readonly rounds?: number | undefined
  /**
   * All run at once instead of in turns: for what mostly waits, so that waiting is done once.
   * Processor time is not counted then.
   */
  readonly together?: boolean | undefined
  /** Whether there is a first round that is not counted; there is if not given. */
  readonly warmUp?: boolean | undefined
}

export interface ContestOptions extends Figure, Field {}

export interface ContestsOptions extends Field {
  /** For the progress that is shown. */
  readonly name: string
  readonly figures: readonly Figure[]
}

interface Measured {
  /** One list for each round, with all figures. */
  readonly rounds: (readonly number[])[]
  readonly cpu: Cpu[]
}

/** No single run may take longer. */
const RUN_MS = 180_000

/**
 * Lets all take turns, so that what else the machine does hits all alike, and compares ours with
 * each of the others, round by round. Where there is nobody else it gives ours alone.
 */
export function contest({ name, unit, better, goal, ...field }: ContestOptions): Promise<Row[]> {
  return contests({ name, figures: [{ name, unit, better, goal }], ...field })
}

/** The same where one run gives several figures. */
export async function contests(options: ContestsOptions): Promise<Row[]> {
  const { figures, together = false } = options
  const ours: readonly Contestant[] = Array.isArray(options.ours) ? options.ours : [options.ours]
  const peers = options.peers.filter((peer) => peer !== undefined)
  const all = [...ours, ...peers]
  const measured = all.map((): Measured => ({ rounds: [], cpu: [] }))
  const rounds = roundsWanted(options.rounds ?? 5)
  for (let round = options.warmUp === false ? 1 : 0; round <= rounds; round++) {
    process.stderr.write(`  ${options.name}: round ${round} of ${rounds}\n`)
    for (const [at, { values, cpu }] of (await turns(all, together, round)).entries()) {
      // The first round is only to warm up.
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

/** One figure of ours beside that of each peer; alone where there is none, or a goal of its own. */
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

/** Each round begins with another, so that nobody always comes behind the same one. */
async function turns(
  all: readonly Contestant[],
  together: boolean,
  round: number,
): Promise<Done[]> {
  if (together) return Promise.all(all.map(once))
  const done: Done[] = []
  for (let turn = 0; turn < all.length; turn++) {
    const at = (turn + round) % all.length
    done[at] = await once(all[at]!)
  }
  return done
}

async function once(contestant: Contestant): Promise<Done> {
  const spent = spending(contestant.pids)
  const run = await bounded(contestant)
  const values = 'values' in run ? run.values : [run.value]
  if (run.cpu) return { values, cpu: run.cpu }
  return run.count === undefined ? { values } : { values, cpu: spent(run.count) }
}

/** Counts processor time from now on, of this process and of those: what one of so many took. */
export function spending(pids: readonly number[] = []): (count: number) => Cpu {
  const before = pids.map(cpuTime)
  const start = process.cpuUsage()
  return (count) => {
    const { user, system } = process.cpuUsage(start)
    const server = pids.reduce((sum, pid, at) => sum + cpuTime(pid) - before[at]!, 0)
    return { client: (user + system) / count, server: pids.length ? server / count : undefined }
  }
}

async function bounded(contestant: Contestant): Promise<Run> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const fail = () => reject(new Error(`${contestant.name} took longer than ${RUN_MS / 1000} s`))
    timer = setTimeout(fail, RUN_MS)
  })
  try {
    return await Promise.race([contestant.run(), late])
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
