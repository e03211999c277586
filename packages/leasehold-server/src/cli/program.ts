import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { isLeaseholdError, systemClock } from 'leasehold/port'
import { backupCommand } from './backup.ts'
import { breakCommand } from './break.ts'
import { completionCommand } from './completion.ts'
import { doctorCommand } from './doctor.ts'
import { electCommand } from './elect.ts'
import { EXIT, Exit, RUN_EXIT } from './exit-codes.ts'
import { getCommand } from './get.ts'
import { historyCommand } from './history.ts'
import { lockCommand } from './lock.ts'
import { lsCommand } from './ls.ts'
import { poolCommand } from './pool.ts'
import { registerCommand } from './register.ts'
import { restoreCommand } from './restore.ts'
import { revokeCommand } from './revoke.ts'
import { serveCommand } from './serve.ts'
import { servicesCommand } from './services.ts'
import { tokenCommand } from './token.ts'
import { topCommand } from './top.ts'
import { waitersCommand } from './waiters.ts'
import { watchCommand } from './watch.ts'

/** These run a command of the caller's, and so must not answer with codes that it may have. */
const RUNNERS: readonly string[] = ['lock', 'elect', 'register']

/** `commandLine` is what stands behind `--`. */
export function programOf(commandLine: readonly string[]): Command {
  const { version } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  ) as { version: string }
  const program: Command = new Command('leasehold')
    .description('Leases over the network: locks with fencing tokens, that end by themselves.')
    .version(version)
  const commands = [
    serveCommand(),
    lockCommand(commandLine),
    electCommand(commandLine),
    registerCommand(commandLine),
    lsCommand(),
    getCommand(),
    watchCommand(),
    historyCommand(),
    waitersCommand(),
    revokeCommand(),
    breakCommand(),
    servicesCommand(),
    poolCommand(),
    tokenCommand(),
    topCommand(),
    doctorCommand(),
    backupCommand(),
    restoreCommand(),
    completionCommand(() => program),
  ]
  for (const command of commands) program.addCommand(command)
  for (const command of [program, ...commands, ...commands.flatMap((each) => each.commands)]) {
    command.exitOverride()
  }
  return program
}

/** Carries out a command line, and ends the process where it has an exit code to tell. */
export async function runProgram(args: readonly string[]): Promise<void> {
  // Whoever read only the beginning has left: `leasehold ls | head`.
  process.stdout.on('error', () => process.exit(EXIT.done))
  const at = args.indexOf('--')
  const own = at < 0 ? args : args.slice(0, at)
  const program = programOf(at < 0 ? [] : args.slice(at + 1))
  // An open stream keeps no process running, and neither does a watch: a command under way does.
  const underWay = systemClock.timer(Number.MAX_SAFE_INTEGER, () => {}, true)
  try {
    await program.parseAsync([...own], { from: 'user' })
  } catch (error) {
    const isRunner = RUNNERS.includes(own[0] ?? '')
    if (error instanceof CommanderError) {
      // It has said what it has to say, be it help.
      if (error.exitCode === 0) process.exit(EXIT.done)
      process.exit(isRunner ? RUN_EXIT.failed : EXIT.usage)
    }
    const message = error instanceof Error ? error.message : String(error)
    if (!(error instanceof Exit) || message !== '') {
      process.stderr.write(`leasehold: ${message}\n`)
    }
    process.exit(codeOf(error, isRunner))
  } finally {
    underWay.cancel()
  }
}

/** With which code a command ends that threw this. */
function codeOf(error: unknown, isRunner: boolean): number {
  if (error instanceof Exit) return error.code
  if (isRunner) return RUN_EXIT.failed
  if (isLeaseholdError(error, 'invalid-argument')) return EXIT.usage
  const isGone =
    isLeaseholdError(error, 'lease-not-found') || isLeaseholdError(error, 'lease-ended')
  return isGone ? EXIT.notThere : EXIT.failed
}
