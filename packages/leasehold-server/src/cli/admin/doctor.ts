import { Command } from 'commander'
import type { LeaseStore } from 'leasehold/port'
import { folderOf } from '../../stores/index.ts'
import { type ConnectionFlags, withConnectionOptions, withStore } from '../connection.ts'
import { EXIT, EXIT_HELP, Exit } from '../exit-codes.ts'
import { print, table } from '../output.ts'
import {
  checkClock,
  checkDisk,
  checkEventLoop,
  checkRoundTrip,
  type Finding,
} from './doctor-checks.ts'

interface DoctorFlags extends ConnectionFlags {
  readonly folder?: string
}

export function doctorCommand(): Command {
  return withConnectionOptions(new Command('doctor'))
    .description('Check this machine, the disk and the server, and advise what to change.')
    .option(
      '--folder <folder>',
      'the folder whose disk to measure (default: the folder of --store, or the current one)',
    )
    .option('--json', 'print JSON')
    .addHelpText('after', EXIT_HELP)
    .action(doctor)
}

async function doctor(flags: DoctorFlags): Promise<void> {
  const findings: Finding[] = [await checkClock(), await checkEventLoop()]
  findings.push(
    await checkDisk(
      flags.folder ?? (flags.store?.startsWith('file:') ? folderOf(flags.store) : '.'),
    ),
  )
  try {
    await withStore(flags, async ({ store }) => {
      findings.push(await checkRoundTrip(store), ...promises(store))
    })
  } catch (error) {
    const advice = (error as Error).message
    findings.push({ check: 'server', state: 'bad', found: 'no answer', advice })
  }
  print(flags.json, findings, () =>
    table(
      ['CHECK', 'STATE', 'FOUND', 'ADVICE'],
      findings.map(({ check, state, found, advice }) => [check, state, found, advice]),
    ),
  )
  if (findings.some(({ state }) => state === 'bad')) throw new Exit(EXIT.failed)
}

/** The guarantees of the store, with advice. */
function promises({ guarantees }: LeaseStore): Finding[] {
  const { engine, durability, tokensSurvive, expiryLateness, ttl, notes } = guarantees
  const isLasting = durability !== 'process'
  return [
    {
      check: 'store',
      state: isLasting ? 'good' : 'look',
      found: `${engine}; answered changes ${isLasting ? `survive a crash (${durability})` : 'do not survive a restart'}`,
      advice: isLasting ? '' : "leases are lost when the server stops: serve 'file:<folder>'",
    },
    {
      check: 'tokens',
      state: tokensSurvive === 'process' ? 'look' : 'good',
      found: `fencing tokens only increase, within: ${tokensSurvive}`,
      advice: tokensSurvive === 'process' ? 'a fence that lives longer may refuse new holders' : '',
    },
    {
      check: 'expiry',
      state: 'good',
      found: `at most ${expiryLateness} ms late; ttls from ${ttl.min} ms`,
      advice: '',
    },
    ...notes.map((note): Finding => ({ check: 'note', state: 'good', found: note, advice: '' })),
  ]
}
