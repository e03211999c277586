// Run it: npm run build && node examples/dist/agent-team.js
import { type ChildProcess, execFileSync, fork, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Leasehold } from 'leasehold'
import { memoryStore } from 'leasehold/memory'
import { createServer } from 'leasehold-server'

/**
 * A team of coding agents on one git repository, each in its own worktree, through the real MCP
 * client. They share nine tasks, two ports, and a file. One is killed with kill -9, one hangs, and one
 * is asked for a file. Every task is done exactly once, and no file is edited by two agents at once:
 * the agents check that at each edit, and this program checks what they wrote. If there is a
 * `python3`, one more agent takes part over HTTP.
 */
const AGENT = fileURLToPath(new URL('agent-team/agent.js', import.meta.url))
const PYTHON_AGENT = fileURLToPath(new URL('../agent-team/agent.py', import.meta.url))

const folder = await mkdtemp(join(tmpdir(), 'agent-team-'))
const repository = join(folder, 'shop')
const shared = join(folder, 'shared')
const store = memoryStore()
const server = await createServer({ store, port: 0 })
const leasehold = await Leasehold.open(store)
// If anything goes wrong, this ends the example with an exit code.
setTimeout(() => fail('this takes too long: something is wrong'), 240_000).unref()

await prepare()
const { url } = server

// One agent is killed in the middle of its task, and one hangs in the middle of its own.
const eve = await start('stuck', 'eve')
await told(eve, 'works')
const dan = await start('stuck', 'dan', '2s')
await told(dan, 'works')
const cyd = await start('format', 'cyd')
await told(cyd, 'holds')
eve.kill('SIGKILL')
console.log('eve is killed with kill -9 in the middle of task/1')
dan.kill('SIGSTOP')
console.log('dan hangs in the middle of task/2')
console.log('cyd formats src/shared.txt, which will take long')

// Two more, and one in Python, do all the tasks, also those of eve and dan.
const asked = told(cyd, 'asked')
const workers = [await start('work', 'ada'), await start('work', 'bob')]
const python = startPython('pam')
console.log(`cyd is asked: ${withoutTimes(await asked)}`)
await Promise.all([...workers.map((worker) => told(worker, 'finished')), told(cyd, 'finished')])
await python
const woke = told(dan, 'woke')
dan.kill('SIGCONT')
dan.send('go on')
console.log(`dan goes on, and is refused: ${withoutTimes(await woke)}`)

await check()
dan.kill('SIGKILL')
await leasehold.close()
await server.close()
await store.close()
await rm(folder, { recursive: true, force: true, maxRetries: 5 })
process.exit()

async function prepare(): Promise<void> {
  await mkdir(join(repository, 'src'), { recursive: true })
  await mkdir(shared)
  await writeFile(join(repository, 'src', 'shared.txt'), 'the plan\n')
  const git = (...args: string[]) => execFileSync('git', args, { cwd: repository, stdio: 'ignore' })
  git('init', '-q')
  git('add', '.')
  git('-c', 'user.name=team', '-c', 'user.email=team@example.org', 'commit', '-qm', 'The plan')
  for (const name of ['ada', 'bob', 'cyd', 'dan', 'eve', 'pam']) {
    git('worktree', 'add', '-q', '-b', name, worktreeOf(name))
  }
  // Two ports for up to four agents that run tests.
  const ports = leasehold.pool('ports', { resources: [{ name: '5170' }, { name: '5171' }] })
  await ports.status()
}

function worktreeOf(name: string): string {
  return join(folder, name)
}

async function start(role: string, name: string, idle = '2h'): Promise<ChildProcess> {
  const args = [role, name, url, shared, idle]
  const agent = fork(AGENT, args, { cwd: worktreeOf(name) })
  agent.on('message', ({ event, text }: { event: string; text: string }) => {
    if (event === 'VIOLATION') fail(`${name}: ${text}`)
  })
  await once(agent, 'spawn')
  return agent
}

/** What an agent says about this event. */
function told(agent: ChildProcess, wanted: string): Promise<string> {
  return new Promise((resolve) => {
    agent.on('message', ({ event, text }: { event: string; text: string }) => {
      if (event === wanted) resolve(text)
    })
  })
}

async function startPython(name: string): Promise<void> {
  if (spawnSync('python3', ['--version']).status !== 0) return
  const args = [PYTHON_AGENT, url, name, shared, worktreeOf(name)]
  const agent = spawn('python3', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  agent.stdout.on('data', (text) => fail(`${name}: ${text}`))
  const [code] = await once(agent, 'exit')
  if (code !== 0) fail(`${name} ended with ${code}`)
}

async function check(): Promise<void> {
  const done = (await readFile(join(shared, 'done.log'), 'utf8')).trim().split('\n')
  if (new Set(done).size !== 9 || done.length !== 9) fail(`done: ${done.join(', ')}`)
  const edits = (await readFile(join(shared, 'edits.log'), 'utf8')).trim().split('\n')
  // Nine files of tasks, three times the shared file, and its formatting.
  if (edits.length !== 13) fail(`edits: ${edits.join(', ')}`)
  const { keys } = await store.read({ prefix: 'repo/' })
  if (keys.length > 0) fail(`still held: ${keys.map(({ key }) => key).join(', ')}`)
  console.log('9 tasks, each done once; 13 edits, none while another agent edited the same file')
}

function withoutTimes(text: string): string {
  return text.replaceAll(/ at \d{4}-\S+Z/g, '')
}

function fail(message: string): never {
  console.error(message)
  process.exit(1)
}
