import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { askAgents } from '../dist/agents/guard/ask-agents.js'
import { questionOf } from '../dist/agents/guard/hook.js'

const LEASEHOLD = fileURLToPath(new URL('leasehold.js', import.meta.url))
const EDITS = ['edit', 'write', 'multiedit', 'patch', 'apply_patch']
/** The exit code of a denied edit. */
const DENIED = 2

/** A plugin for opencode: an edit of a file that another agent holds fails, with the reason. */
export const LeaseholdGuard = async ({ directory }) => ({
  'tool.execute.before': async ({ tool }, { args }) => {
    if (!EDITS.includes(tool)) return
    const question = questionOf({ cwd: directory, tool_input: args }, false)
    if (question.paths.length === 0) return
    // The plugin runs inside of the host, so it needs no process to ask `leasehold mcp`.
    const answer = await askAgents(question).catch(() => ({ allow: true }))
    const { allow, text } = answer ?? (await askServer(question))
    if (!allow) throw new Error(text)
  },
})

/** Without a `leasehold mcp` under this host, the command line asks the lease server. */
function askServer({ paths, folder }) {
  return new Promise((resolve) => {
    execFile(LEASEHOLD, ['mcp', 'guard', ...paths], { cwd: folder }, (error, _output, text) => {
      resolve({ allow: error?.code !== DENIED, text: text.trim() })
    })
  })
}
