import { Command, CommanderError } from 'commander'
import { isLeaseholdError, systemClock } from 'leasehold/port'
import { messageOf, packageVersion } from '../config/index.ts'
import * as admin from './admin/index.ts'
import * as agents from './agents/index.ts'
import { completionCommand } from './completion.ts'
import { withConnectionOptions } from './connection.ts'
import { EXIT, Exit, RUN_EXIT } from './exit-codes.ts'
import { withForeignNames } from './foreign-names.ts'
import * as inspect from './inspect/index.ts'
import * as run from './run/index.ts'
import { serveCommand } from './serve.ts'

/** These run another command, so their own exit codes must differ from its codes. */
const RUNNERS: readonly string[] = ['lock', 'elect', 'register', 'once', 'cron']

type Make = (commandLine: readonly string[], program: Command) => Command

const COMMANDS: Readonly<Record<string, Make>> = {
  serve: serveCommand,
  lock: run.lockCommand,
  elect: run.electCommand,
  register: run.registerCommand,
  once: run.onceCommand,
  cron: run.cronCommand,
  ls: inspect.lsCommand,
  get: inspect.getCommand,
  watch: inspect.watchCommand,
  history: inspect.historyCommand,
  waiters: inspect.waitersCommand,
  revoke: admin.revokeCommand,
  break: admin.breakCommand,
  drain: admin.drainCommand,
  leases: inspect.leasesCommand,
  elections: inspect.electionsCommand,
  services: inspect.servicesCommand,
  pool: inspect.poolCommand,
  sessions: inspect.sessionsCommand,
  'access-token': admin.accessTokenCommand,
  mcp: agents.mcpCommand,
  top: inspect.topCommand,
  doctor: admin.doctorCommand,
  backup: admin.backupCommand,
  restore: admin.restoreCommand,
  completion: (_commandLine, program) => completionCommand(() => program),
}

/**
 * `commandLine` is the part after `--`. Without the name of the command that will run, the program has
 * all commands, and takes longer to make.
 */
export function programOf(commandLine: readonly string[], name?: string): Command {
  const program: Command = new Command('leasehold')
    .description('Leases over the network: locks with fencing tokens that expire by themselves.')
    .version(packageVersion())
    .addHelpText(
      'after',
      `
The options of a connection (--server, --access-token, --ca, --cert, --key, --store, --timeout) and
--json can also come before the command: leasehold --server https://leases.example ls`,
    )
  const isAlone = name !== undefined && name !== 'completion' && Object.hasOwn(COMMANDS, name)
  const makes = isAlone ? [COMMANDS[name]!] : Object.values(COMMANDS)
  const commands = makes.map((make) => make(commandLine, program))
  for (const command of commands) program.addCommand(command)
  for (const command of [program, ...commands, ...commands.flatMap((each) => each.commands)]) {
    const inherited = command === program ? beforeCommand().options : []
    const names = [...command.options, ...inherited].map(({ long }) => long)
    command.exitOverride().configureOutput({
      outputError: (message, write) => write(withForeignNames(message, command, names)),
    })
  }
  return program
}

/** Runs a command line; exits the process if it has an exit code. */
export async function runProgram(args: readonly string[]): Promise<void> {
  // The reader has left, as in `leasehold ls | head`.
  process.stdout.on('error', () => process.exit(EXIT.done))
  const at = args.indexOf('--')
  const own = withCommandFirst(at < 0 ? args : args.slice(0, at))
  const program = programOf(at < 0 ? [] : args.slice(at + 1), own[0])
  // Open streams and watches do not keep the process running; this timer does.
  const keepAlive = systemClock.timer(Number.MAX_SAFE_INTEGER, () => {}, true)
  try {
    await program.parseAsync([...own], { from: 'user' })
  } catch (error) {
    const isRunner = RUNNERS.includes(own[0] ?? '')
    if (error instanceof CommanderError) {
      // Commander has already printed its message or the help.
      if (error.exitCode === 0) process.exit(EXIT.done)
      process.exit(isRunner ? RUN_EXIT.failed : EXIT.usage)
    }
    const message = messageOf(error)
    if (!(error instanceof Exit) || message !== '') {
      process.stderr.write(`leasehold: ${message}\n`)
    }
    process.exit(codeOf(error, isRunner))
  } finally {
    keepAlive.cancel()
  }
}

/** Moves the options of a connection behind the command, which is where they are parsed. */
function withCommandFirst(args: readonly string[]): readonly string[] {
  const known = beforeCommand().options
  let at = 0
  while (at < args.length) {
    const [name] = args[at]!.split('=')
    const option = known.find(({ long }) => long === name)
    if (option === undefined) break
    at += option.isBoolean() || args[at]!.includes('=') ? 1 : 2
  }
  return [...args.slice(at), ...args.slice(0, at)]
}

/** The options that may also come before the command. */
function beforeCommand(): Command {
  return withConnectionOptions(new Command()).option('--json')
}

/** The exit code for an error. */
function codeOf(error: unknown, isRunner: boolean): number {
  if (error instanceof Exit) return error.code
  if (isRunner) return RUN_EXIT.failed
  if (isLeaseholdError(error, 'invalid-argument')) return EXIT.usage
  const isGone =
    isLeaseholdError(error, 'lease-not-found') ||
    isLeaseholdError(error, 'lease-ended') ||
    isLeaseholdError(error, 'claim-not-found')
  return isGone ? EXIT.notThere : EXIT.failed
}
