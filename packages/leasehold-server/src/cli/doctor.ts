import { Command } from 'commander'
import type { LeaseStore } from 'leasehold/port'
import { folderOf } from '../stores/index.ts'
import { type ConnectionFlags, connecting, withStore } from './connection.ts'
import { checkClock, checkDisk, checkEventLoop, checkRoundTrip, type Finding } from './diagnosis.ts'
import { EXIT, EXIT_HELP, Exit } from './exit-codes.ts'
import { print, table } from './table.ts'

interface DoctorFlags extends ConnectionFlags {
  readonly folder?: string
}

export function doctorCommand(): Command {
  return connecting(new Command('doctor'))
    .description('Looks at this machine, the disk and the server, and says what to change.')
    .option(
      '--folder <folder>',
      'the folder whose disk is to be measured (default: that of --store, or this one)',
    )
    .option('--json', 'prints JSON')
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
    findings.push({ check: 'server', state: 'bad', found: 'it does not answer', advice })
  }
  print(flags.json, findings, () =>
    table(
      ['CHECK', 'STATE', 'FOUND', 'ADVICE'],
      findings.map(({ check, state, found, advice }) => [check, state, found, advice]),
    ),
  )
  if (findings.some(({ state }) => state === 'bad')) throw new Exit(EXIT.failed)
}

/** What the store promises, and what that means. */
function promises({ guarantees }: LeaseStore): Finding[] {
  const { engine, durability, tokensSurvive, expiryLateness, ttl, notes } = guarantees
  const isLasting = durability !== 'process'
  return [
    {
      check: 'store',
      state: isLasting ? 'good' : 'look',
      found: `${engine}; an answer survives ${isLasting ? `a crash (${durability})` : 'nothing'}`,
      advice: isLasting ? '' : "leases are lost when the server stops: serve 'file:<folder>'",
    },
    {
      check: 'tokens',
      state: tokensSurvive === 'process' ? 'look' : 'good',
      found: `they only go up, across ${tokensSurvive}`,
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
