import type { askServer as AskServer } from './cli/agents/guard-server.ts'

export { runProgram as run } from './cli/program.ts'

/** For a guard that no `leasehold mcp` answers. */
export const askServer: typeof AskServer = async (...question) => {
  const guard = await import('./cli/agents/guard-server.ts')
  return guard.askServer(...question)
}
