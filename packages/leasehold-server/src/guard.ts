import { runGuard } from './agents/guard/run-guard.ts'

// The quick way into `leasehold mcp guard`, without the rest of the command line.

const VALUED = ['--agent', '--server', '--repository']

const args = process.argv.slice(4)
const paths = args.filter((arg, at) => !arg.startsWith('-') && !VALUED.includes(args[at - 1] ?? ''))

await runGuard({ take: args.includes('--take'), paths }, async (question) => {
  const { askServer } = await import('./cli/agents/guard-server.ts')
  return askServer(question, args)
})
