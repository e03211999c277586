import { runGuard } from './agents/guard/run-guard.ts'

// The quick way into `leasehold mcp guard`, without the rest of the command line.

const VALUED = ['--agent', '--server', '--repository']

/** `given` is the command line. */
export async function run(given: readonly string[]): Promise<void> {
  const args = given.slice(2)
  const paths = args.filter(
    (arg, at) => !arg.startsWith('-') && !VALUED.includes(args[at - 1] ?? ''),
  )
  await runGuard({ take: args.includes('--take'), paths }, async (question) => {
    const { askServer } = await import('./cli/agents/guard-server.ts')
    return askServer(question, args)
  })
}
