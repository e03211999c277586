// Starts a server, and runs a client of it in other runtimes: node scripts/runtimes.js 'bun run' 'deno run -A'
import { spawn, spawnSync } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PROGRAM = fileURLToPath(new URL('runtimes/client.js', import.meta.url))

const args = [
  'packages/leasehold-server/bin/leasehold.js',
  'serve',
  '--store',
  'memory:',
  '--port',
  '0',
]
const server = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] })
const [line] = await createInterface({ input: server.stdout })
  [Symbol.asyncIterator]()
  .next()
  .then(({ value }) => [value])
const url = /https?:\S+/.exec(line)[0]

for (const runtime of process.argv.slice(2)) {
  const [command, ...options] = runtime.split(' ')
  const env = { ...process.env, LEASEHOLD_URL: url }
  const ran = spawnSync(command, [...options, PROGRAM], { cwd: ROOT, env, encoding: 'utf8' })
  process.stdout.write(`${command}: ${ran.stdout}${ran.stderr}`)
  if (ran.stdout !== 'locked, waited in turn, lost, memory\n') process.exitCode = 1
}
server.kill()
