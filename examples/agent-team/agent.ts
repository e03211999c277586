// One coding agent of the example agent-team: a real MCP client with its own `leasehold mcp`.
import { appendFile, open, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'

const [, , role = '', name = '', server = '', shared = '', idle = '2h'] = process.argv
const bin = join(
  dirname(fileURLToPath(import.meta.resolve('leasehold-server/package.json'))),
  'bin/leasehold.js',
)
const client = new Client({ name, version: '1.0.0' })
await client.connect(
  // A real host has the command `npx leasehold mcp`.
  new StdioClientTransport({
    command: process.execPath,
    args: [bin, 'mcp', '--server', server, '--agent', name, '--repository', 'shop', '--idle', idle],
  }),
)

interface Answer {
  readonly state: 'held' | 'waiting' | 'busy' | 'done'
  readonly hold: string
  readonly for: readonly string[]
  readonly resources: readonly string[]
  readonly next: string
  readonly notices: readonly { readonly about: string; readonly text: string }[]
}

/** What a model would do, by calling a tool. */
async function call(tool: string, args: object): Promise<Answer> {
  const { structuredContent, content, isError } = await client.callTool({
    name: tool,
    arguments: { ...args },
  })
  if (isError) throw new Error((content as { text: string }[])[0]!.text)
  return structuredContent as unknown as Answer
}

function tell(event: string, text: string): void {
  process.send!({ event, name, text })
}

/** Waits in the queue for as long as it takes. */
async function held(answer: Answer): Promise<Answer> {
  let now = answer
  while (now.state === 'waiting') now = await call('wait', { hold: now.hold, wait: 50 })
  return now
}

const tasks = Array.from({ length: 9 }, (_, index) => `task/${index + 1}`)

/** Every task changes its own file; every third one also a file that all of them share. */
function filesOf(task: string): string[] {
  const number = Number(task.slice('task/'.length))
  return [`src/${number}.txt`, ...(number % 3 === 0 ? ['src/shared.txt'] : [])]
}

/** Edits a file in this worktree, and reports if another living agent edits it at the same time. */
async function edit(file: string, text: string): Promise<void> {
  const marker = join(shared, file.replaceAll('/', '-'))
  const other = Number(await readFile(marker, 'utf8').catch(() => '0'))
  if (other !== 0 && isAlive(other)) tell('VIOLATION', `${file} is edited by process ${other}, too`)
  await writeFile(marker, String(process.pid))
  const opened = await open(file, 'a')
  await opened.write(`${text}\n`)
  await pause(20)
  await opened.close()
  if (Number(await readFile(marker, 'utf8')) !== process.pid) {
    tell('VIOLATION', `${file} was edited by another agent meanwhile`)
  }
  await rm(marker)
  await appendFile(join(shared, 'edits.log'), `${name} ${file}\n`)
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Takes a task, a port and the files of the task. */
async function begin(): Promise<{ task: string; holds: string[]; hold: string } | undefined> {
  const claimed = await call('claim_next', { keys: tasks, purpose: 'working on it' })
  if (claimed.state !== 'held') {
    if (claimed.next.startsWith('All tasks are done')) return undefined
    await pause(100)
    return begin()
  }
  const task = claimed.for[0]!
  const port = await held(await call('take', { pool: 'ports', purpose: `tests of ${task}` }))
  const wanted = { paths: filesOf(task), purpose: `${task} of the plan` }
  let files = await call('acquire', { ...wanted, wait: 0 })
  if (files.state === 'waiting') {
    const path = wanted.paths.at(-1)!
    await call('ask_back', { path, why: `${task} needs it` }).catch(() => {})
    tell('asks', `${path} back, for ${task}`)
    files = await held(files)
  }
  return { task, holds: [port.hold, files.hold], hold: claimed.hold }
}

/** Works until nothing is left to do. */
async function work(): Promise<void> {
  for (let next = await begin(); next !== undefined; next = await begin()) {
    for (const file of filesOf(next.task)) await edit(file, `${next.task} by ${name}`)
    await appendFile(join(shared, 'done.log'), `${next.task}\n`)
    await call('release', { hold: next.hold, done: true, result: { by: name } })
    for (const hold of next.holds) await call('release', { hold })
  }
}

/** Takes a task, begins to edit, and gets no further. */
async function getStuck(): Promise<void> {
  const { task, hold } = (await begin())!
  tell('works', `on ${task}`)
  await new Promise((resolve) => process.once('message', resolve))
  // Only the agent that hung gets here: it still believes that the task is its own.
  const refused = await call('release', { hold, done: true }).catch((error: Error) => error)
  tell('woke', refused instanceof Error ? refused.message : `marked ${task} as done`)
}

/** Holds the shared file for long, but looks at its notices. */
async function formatAll(): Promise<void> {
  const { hold } = await call('acquire', { paths: ['src/shared.txt'], purpose: 'formatting it' })
  tell('holds', 'src/shared.txt')
  for (;;) {
    const { notices } = await call('mine', {})
    const asked = notices.find(({ about }) => about === 'asked-back')
    if (asked !== undefined) {
      tell('asked', asked.text)
      break
    }
    await pause(50)
  }
  await edit('src/shared.txt', `formatted by ${name}`)
  await call('release', { hold })
}

await { work, stuck: getStuck, format: formatAll }[role]!()
await client.close()
tell('finished', '')
process.disconnect()
