/**
 * Prints the call path of one `lock()` on a `file:` store, as JSON: the functions from
 * `Leasehold.lock` to the lock, in order. It runs the built code, so build first.
 *
 * The path is on the stack at three moments: when the kernel gets the request, when the bytes go to
 * the disk, and when the hold is created. Each has a breakpoint with a condition that records the
 * stack and is never true. The output also counts the functions of the client side that were
 * entered.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { Session } from 'node:inspector/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const MOMENTS = [
  ['kernel/kernel.js', '#grant'],
  ['stores/file/disk/node-disk.js', '#writeSome'],
  ['client/leases/hold.js', 'KeptHold'],
]
const DIST = new URL('../packages/leasehold/dist/', import.meta.url)
const CLIENT_SIDE = /^(leasehold\.js|recipes\/|client\/)/

const session = new Session()
session.connect()
await session.post('Debugger.enable')
await session.post('Profiler.enable')
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
const { Leasehold } = await import(new URL('index.js', DIST).href)

/** Locks once on a new store, and runs `before` and `after` around it. */
async function lockOnce(before, after) {
  const folder = await mkdtemp(join(tmpdir(), 'lock-walk-'))
  const leasehold = await Leasehold.open(`file:${folder}`)
  // The store writes its manifest after a second, which is no part of the path.
  await new Promise((resolve) => setTimeout(resolve, 1200))
  await before()
  await leasehold.lock('reports')
  await after()
  await leasehold.close()
  await rm(folder, { recursive: true })
}

let scripts = []
const takeCoverage = async () => {
  scripts = (await session.post('Profiler.takePreciseCoverage')).result
}
await lockOnce(takeCoverage, takeCoverage)
await session.post('Profiler.stopPreciseCoverage')

const entered = []
for (const { url, scriptId, functions } of scripts) {
  if (!url.startsWith(DIST.href)) continue
  const file = url.slice(DIST.href.length)
  const text = await readFile(fileURLToPath(url), 'utf8')
  for (const { functionName, ranges } of functions) {
    const [{ count, startOffset, endOffset }] = ranges
    // Skip the module itself, and the initializers of class fields, which are in angle brackets.
    if (count === 0 || startOffset === 0 || functionName.startsWith('<')) continue
    entered.push({ file, functionName })
    if (!MOMENTS.some(([at, name]) => at === file && name === functionName)) continue
    const { locations } = await session.post('Debugger.getPossibleBreakpoints', {
      start: locationOf(scriptId, text, startOffset),
      end: locationOf(scriptId, text, endOffset),
      restrictToFunction: true,
    })
    await session.post('Debugger.setBreakpoint', {
      location: locations[0],
      condition: `globalThis.noteStack?.(${JSON.stringify(functionName)})`,
    })
  }
}

const stacks = new Map()
Error.stackTraceLimit = Infinity
await lockOnce(
  () => {
    globalThis.noteStack = (name) => {
      if (!stacks.has(name)) stacks.set(name, new Error().stack)
    }
  },
  () => {
    globalThis.noteStack = undefined
  },
)

const walk = []
for (const [file, name] of MOMENTS) {
  for (const line of (stacks.get(name) ?? '').split('\n').reverse()) {
    const frame = /at (?:async )?(?:new )?(?:(\S+) \()?(file:[^)]*?):\d+:\d+\)?$/.exec(line)
    if (!frame?.[2].startsWith(DIST.href)) continue
    const hop = {
      function: frame[1] ?? '(anonymous)',
      file: source(frame[2].slice(DIST.href.length)),
    }
    if (!walk.some((known) => known.function === hop.function && known.file === hop.file)) {
      walk.push(hop)
    }
  }
  if (!walk.some((hop) => hop.file === source(file))) throw new Error(`${name} was not entered`)
}
const clientSide = entered.filter(({ file }) => CLIENT_SIDE.test(file))
const files = new Set(clientSide.map(({ file }) => file))
console.log(
  JSON.stringify({ walk, clientSide: { functions: clientSide.length, files: files.size } }),
)

function source(file) {
  return file.replace(/\.js$/, '.ts')
}

function locationOf(scriptId, text, offset) {
  const lines = text.slice(0, offset).split('\n')
  return { scriptId, lineNumber: lines.length - 1, columnNumber: lines.at(-1).length }
}
