import { Command } from 'commander'
import type { CronRun, CronSchedule, Leasehold } from 'leasehold'
import { type Duration, LeaseholdError } from 'leasehold/port'
import {
  type Connection,
  type ConnectionFlags,
  withConnectionOptions,
  withLeasehold,
} from '../connection.ts'
import { RUN_EXIT_HELP } from '../exit-codes.ts'
import { stopSignal } from '../stop-signal.ts'
import { requireCommand } from './child-process.ts'
import { checkTimings, runWhileHeld, timingsOf } from './run-while-held.ts'

interface CronFlags extends ConnectionFlags {
  readonly at?: string
  readonly timeZone?: string
  readonly every?: string
  readonly catchUp?: string
  readonly ttl: string
  readonly killAfter?: string
  readonly holder?: string
}

export function cronCommand(commandLine: readonly string[]): Command {
  return withConnectionOptions(new Command('cron'))
    .description('Run a command on a schedule, on one machine of a fleet at a time.')
    .usage("[options] <name> (--at '0 3 * * *' | --every 5m) -- <command...>")
    .argument('<name>', 'the job; machines with the same name share it')
    .option('--at <expression>', 'a cron expression: minute, hour, day, month, weekday')
    .option(
      '--time-zone <name>',
      "the time zone of --at, such as Europe/Berlin (default: this machine's)",
    )
    .option('--every <duration>', 'at the multiples of this since the Unix epoch')
    .option('--catch-up <duration>', 'how late a run may be and still be run', '1h')
    .option('--ttl <duration>', 'how long after the death of one machine another takes over', '10s')
    .option('--kill-after <duration>', 'time between TERM and KILL when the lease is lost')
    .option('--holder <name>', 'the name of this machine, shown to others')
    .addHelpText(
      'after',
      `
Start it on every machine that may run the command. LEASEHOLD_TIME contains the time when the run
was due, which names it, and LEASEHOLD_TOKEN the fencing token. TERM and INT are passed to a command
that runs, and end the job on this machine.
${RUN_EXIT_HELP}`,
    )
    .action((name: string, flags: CronFlags) => cron(name, flags, requireCommand(commandLine)))
}

async function cron(name: string, flags: CronFlags, line: readonly string[]): Promise<void> {
  const timings = timingsOf(flags.ttl, flags.killAfter)
  const schedule = scheduleOf(flags)
  const run = async (leasehold: Leasehold, { store }: Connection) => {
    checkTimings(timings, flags.killAfter, store.guarantees)
    const stop = stopSignal()
    leasehold.on('recipe-event', ({ event, detail }) => {
      process.stderr.write(`leasehold: ${name} ${event}: ${detail}\n`)
    })
    const work = async ({ time, lock }: CronRun) => {
      const { signal, lease, token } = lock
      const environment = { LEASEHOLD_TIME: time.toISOString() }
      const command = { line, name, environment }
      const { code } = await runWhileHeld(leasehold, { signal, lease, token }, timings, command)
      if (code !== 0) throw new Error(`the command ended with ${code}`)
    }
    const catchUp = flags.catchUp as Duration | undefined
    const job = await leasehold.cron(name, schedule, work, { ...timings, catchUp })
    try {
      await Promise.race([job.ended, aborted(stop.signal)])
    } finally {
      await job.close()
      stop.end()
    }
  }
  await withLeasehold(flags, flags.holder, run, true)
}

function scheduleOf({ at, every, timeZone }: CronFlags): CronSchedule {
  if (at !== undefined && every === undefined) return { cron: at, timeZone }
  if (every !== undefined && at === undefined) return { every: every as Duration }
  const what = at === undefined ? 'the schedule is missing' : 'there are two schedules'
  throw new LeaseholdError(
    'invalid-argument',
    `${what}: give either --at '0 3 * * *' or --every 5m`,
  )
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
