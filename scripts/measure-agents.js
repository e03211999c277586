// Measures what MCP adds to the store's time, and how long a guard takes, against what Node needs to
// start. Run it on an idle machine: npm run build && node scripts/measure-agents.js
import { spawn } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { memoryStore } from 'leasehold/memory'
import { remoteStore } from 'leasehold/remote'
import { createServer } from 'leasehold-server'

const BIN = fileURLToPath(new URL('../packages/leasehold-server/bin/leasehold.js', import.meta.url))
const CALLS = 300
const STARTS = 60

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

const starts = { node: [], guard: [] }
for (let index = 0; index < STARTS; index++) {
  starts.node.push(await time(() => run(['-e', '0'])))
  starts.guard.push(await time(() => run([BIN, 'mcp', 'guard'])))
}
for (const [name, list] of Object.entries(starts)) report(name, list)
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

function run(args) {
  const input = { cwd: folder, tool_input: { file_path: join(folder, 'a.ts') } }
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'ignore', 'inherit'] })
    child.stdin.on('error', () => {}).end(JSON.stringify(input))
    child.on('close', () => resolve(undefined))
  })
}

function report(name, list) {
  const sorted = [...list].sort((a, b) => a - b)
  const at = (part) => sorted[Math.floor(part * sorted.length)].toFixed(2)
  console.log(`${name.padEnd(16)} min ${at(0)} ms, p50 ${at(0.5)} ms, p95 ${at(0.95)} ms`)
}
