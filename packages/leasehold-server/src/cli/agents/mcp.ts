import { Command } from 'commander'
import { DEFAULT_PORT } from '../../config/listen-address.ts'
import { type ConnectionFlags, withConnectionOptions } from '../connection.ts'
import { EXIT_HELP } from '../exit-codes.ts'

export interface McpFlags extends ConnectionFlags {
  readonly agent?: string | undefined
  readonly repository?: string | undefined
  readonly maxHold: string
  readonly idle: string
  readonly allowBreak?: boolean | undefined
  readonly port: string
  readonly data?: string | undefined
}

export function mcpCommand(): Command {
  const command = new Command('mcp')
    .description('Serve the tools for coding agents over MCP, on standard input and output.')
    .option(
      '--agent <name>',
      'the name of this agent [LEASEHOLD_AGENT] (default: the folder, and a number)',
    )
    .option('--repository <name>', 'the name of the repository, if it differs between machines')
    .option('--max-hold <duration>', 'the longest time that one hold lasts', '8h')
    .option('--idle <duration>', 'releases everything if no tool was called for this long', '2h')
    .option('--allow-break', 'agents may take holds away without asking a person')
    .option('--port <number>', 'the port of the local server', String(DEFAULT_PORT))
    .option('--data <folder>', 'where a local server that is started here keeps its store')
    .addHelpText(
      'after',
      `
Without --server (or LEASEHOLD_URL) it uses the server on this machine, and starts one if there is none;
that one exits when nobody uses it. Everything that is held is released when standard input ends, when
the parent process changes, or when this process dies.
${EXIT_HELP}`,
    )
    .action(async (flags: McpFlags) => {
      // Loaded here: the other commands do without it.
      const { serveMcp } = await import('./serve-mcp.ts')
      await serveMcp(flags)
    })
  return withConnectionOptions(command).addCommand(guardCommand())
}

/** The binary runs it without this program, because it must be quick: see `guard.ts`. */
function guardCommand(): Command {
  return new Command('guard')
    .description('Deny an edit of a file that another agent holds: a hook for agent hosts.')
    .argument('[files...]', 'the files; without them, standard input is the JSON of a hook')
    .option('--take', 'take the hold of a file that is free')
    .option('--agent <name>', 'the name of this agent, if no leasehold mcp runs beside it')
    .option('--server <url>', 'the server, if no leasehold mcp runs beside it [LEASEHOLD_URL]')
    .option('--repository <name>', 'the name of the repository, as for leasehold mcp')
    .addHelpText(
      'after',
      `
As a hook it prints a decision for Claude Code and Codex. With files as arguments it exits with 2 if the
edit is denied, and prints why. If the lease server cannot be reached, the edit is allowed with a warning.
It asks the leasehold mcp that the same agent host has started, and knows by it which holds are yours.`,
    )
    .action(async () => {
      const { run } = await import('../../guard.ts')
      await run(process.argv.slice(2))
    })
}
