import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const GUARD = fileURLToPath(new URL('leasehold.js', import.meta.url))
const EDITS = ['edit', 'write', 'multiedit', 'patch', 'apply_patch']
const PATCHED = /^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+)$/gm
/** The exit code of a denied edit. */
const DENIED = 2

/** A plugin for opencode: an edit of a file that another agent holds fails, with the reason. */
export const LeaseholdGuard = async ({ directory }) => ({
  'tool.execute.before': async ({ tool }, { args }) => {
    if (!EDITS.includes(tool)) return
    const paths = args.filePath === undefined ? patchedFiles(args.patchText) : [args.filePath]
    if (paths.length > 0) await check(paths, directory)
  },
})

function patchedFiles(patch = '') {
  return [...patch.matchAll(PATCHED)].map(([, path]) => path.trim())
}

function check(paths, cwd) {
  return new Promise((resolve, reject) => {
    execFile(GUARD, ['mcp', 'guard', ...paths], { cwd }, (error, _output, reason) => {
      if (error?.code === DENIED) reject(new Error(reason.trim()))
      else resolve()
    })
  })
}
