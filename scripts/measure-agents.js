// Measures what MCP adds to the store's time, how long a guard takes, against what Node needs to start,
// and how soon everything is free after a kill -9. Run it on an idle machine, for about a minute:
// npm run build && node scripts/measure-agents.js
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { memoryStore } from 'leasehold/memory'
import { remoteStore } from 'leasehold/remote'
import { createServer } from 'leasehold-server'

const BIN = inServer('bin/leasehold.js')
const SHELL_GUARD = inServer('bin/leasehold-guard.sh')
const KILLED_CLIENT = inServer('test/agents/killed-client.mjs')
const CALLS = 300
const STARTS = 100
const KILLS = 20
const ORPHANS = 5

const server = await createServer({ store: memoryStore(), port: 0 })
const store = await remoteStore(server.url)
const folder = mkdtempSync(join(tmpdir(), 'measure-agents-'))
const stdio = await connected(
  new StdioClientTransport({
    command: process.execPath,
    args: [BIN, 'mcp', '--server', server.url],
    cwd: folder,
  }),
)
const http = await connected(
  new StreamableHTTPClientTransport(new URL(`${server.url}/mcp?agent=measured`)),
)

// The three take turns, so that a busy moment of the machine affects all of them.
const times = { store: [], stdio: [], http: [] }
for (let index = 0; index < CALLS + 50; index++) {
  const taken = [await time(storeCall), await time(() => tool(stdio)), await time(() => tool(http))]
  // The first calls compile the code.
  if (index >= 50) Object.values(times).forEach((list, at) => void list.push(taken[at]))
}
for (const [name, list] of Object.entries(times)) report(`acquire, ${name}`, list)

const starts = { node: [], 'guard, shell': [], 'guard, node': [] }
for (let index = 0; index < STARTS; index++) {
  starts.node.push(await time(() => run(process.execPath, ['-e', '0'])))
  starts['guard, shell'].push(await time(() => run(SHELL_GUARD, [])))
  starts['guard, node'].push(await time(() => run(process.execPath, [BIN, 'mcp', 'guard'])))
}
for (const [name, list] of Object.entries(starts)) report(name, list)

const freed = []
for (let index = 0; index < KILLS; index++) freed.push(await freedAfterKill(`killed/${index}`))
report('client killed', freed)
const gone = []
for (let index = 0; index < ORPHANS; index++) gone.push(await goneAfterParent())
report('server orphaned', gone)
process.exit()

async function connected(transport) {
  const mode = { pin: '2026-07-28' }
  const client = new Client({ name: 'measure', version: '1.0.0' }, { versionNegotiation: { mode } })
  await client.connect(transport)
  return client
}

/** What the store needs for the same claim, over the same connection. */
async function storeCall() {
  const claims = [{ key: 'k-store', mode: 'exclusive' }]
  const { lease } = await store.grant({ holder: 'm', ttl: 30_000, grace: 0, claims })
  return () => store.revoke({ target: { lease }, by: 'm' })
}

async function tool(client) {
  const key = `k-${client === stdio ? 'stdio' : 'http'}`
  const args = { keys: [key], purpose: 'measure' }
  const { structuredContent } = await client.callTool({ name: 'acquire', arguments: args })
  const { hold } = structuredContent
  return () => client.callTool({ name: 'release', arguments: { hold } })
}

/** The time of `work`; what it returns is run afterwards and not counted. */
async function time(work) {
  const before = performance.now()
  const after = await work()
  const taken = performance.now() - before
  await after?.()
  return taken
}

/** Runs a guard as a host does; this process is the host of `stdio`. */
function run(command, args) {
  const input = { cwd: folder, tool_input: { file_path: join(folder, 'src', 'a.ts') } }
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ['pipe', 'ignore', 'inherit'] })
    child.stdin.on('error', () => {}).end(JSON.stringify(input))
    child.on('close', () => resolve(undefined))
  })
}

/** How long a key stays held after its client was killed. */
async function freedAfterKill(key) {
  const command = [process.execPath, BIN, 'mcp', '--server', server.url]
  const program = `
    import { startAgent } from ${JSON.stringify(KILLED_CLIENT)}
    await startAgent('client 2', ${JSON.stringify(command)}, ${JSON.stringify(key)})`
  const client = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(client.stdout, 'data')
  return time(async () => {
    client.kill('SIGKILL')
    while ((await store.read({ key })).holders > 0);
  })
}

/** How long an MCP server lives whose parent was killed, and whose input stays open. */
async function goneAfterParent() {
  const pipe = join(mkdtempSync(join(folder, 'input-')), 'pipe')
  execFileSync('mkfifo', [pipe])
  openSync(pipe, 'r+')
  const command = `"${process.execPath}" "${BIN}" mcp --server ${server.url} --agent orphan <"${pipe}" & echo $!; wait`
  const shell = spawn('sh', ['-c', command], { stdio: ['ignore', 'pipe', 'inherit'] })
  const pid = Number(await once(shell.stdout, 'data'))
  // It has started when it is connected to the lease server.
  while (connectionsOf(pid) === 0) await once(spawn('sleep', ['0.1']), 'exit')
  return time(async () => {
    shell.kill('SIGKILL')
    while (isAlive(pid)) await new Promise((resolve) => setTimeout(resolve, 5))
  })
}

function connectionsOf(pid) {
  const list = execFileSync('ss', ['-tnpH', 'state', 'established'], { encoding: 'utf8' })
  return list.split('\n').filter((line) => line.includes(`pid=${pid},`)).length
}

/** A process that has ended may wait for its new parent to notice. */
function isAlive(pid) {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')
  } catch {
    return false
  }
}

function inServer(path) {
  return fileURLToPath(new URL(`../packages/leasehold-server/${path}`, import.meta.url))
}

function report(name, list) {
  const sorted = [...list].sort((a, b) => a - b)
  const at = (part) => sorted[Math.floor(part * sorted.length)].toFixed(2)
  console.log(`${name.padEnd(16)} min ${at(0)} ms, p50 ${at(0.5)} ms, p95 ${at(0.95)} ms`)
}
