// Run it: npm run build && node examples/dist/agent-fleet.js
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer as createWeb } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Discovery, type Instance, Leasehold } from 'leasehold'
import { memoryStore } from 'leasehold/memory'
import { remoteStore } from 'leasehold/remote'
import { createServer } from 'leasehold-server'

/**
 * A fleet of agents, each in its own process. They register their capabilities with a lease server,
 * are found there and asked to work. One becomes ill while its heartbeat continues, one is killed with
 * SIGKILL, and one is asked to stop. Each of them disappears from discovery.
 */
const [, file, role, url = '', id = '', ...capabilities] = process.argv
await (role === 'agent' ? agent() : fleet())

/** One agent: a small web server that works and reports its health. */
async function agent(): Promise<void> {
  let isIll = false
  const web = createWeb((request, response) => {
    if (request.url === '/fall-ill') isIll = true
    const isFine = request.url !== '/health' || !isIll
    response.writeHead(isFine ? 200 : 500).end(`${id} has worked on ${request.url}`)
  })
  web.listen(0, '127.0.0.1')
  await once(web, 'listening')
  const { port } = web.address() as AddressInfo

  // Tied to its connection: when this process dies, the system closes it, and the lease ends.
  const store = await remoteStore(url, { tied: true })
  const leasehold = await Leasehold.open(store, { holder: id })
  await leasehold.registry.register('agents', {
    id,
    address: `127.0.0.1:${port}`,
    capabilities,
    check: { http: '/health', every: '500ms', down: 2 },
  })
  process.on('message', async () => {
    await leasehold.close() // Leaves discovery before it stops working.
    await store.close()
    process.exit()
  })
  process.on('disconnect', () => process.exit())
}

function say(text: string): void {
  console.log(text)
}

function start(server: string, name: string, ...can: string[]): ChildProcess {
  return fork(file!, ['agent', server, name, ...can])
}

async function fleet(): Promise<void> {
  // If anything goes wrong, this ends the example with an exit code.
  setTimeout(() => {
    console.error('this takes too long: something is wrong')
    process.exit(1)
  }, 60_000).unref()

  const server = await createServer({ store: memoryStore(), port: 0 })
  const leasehold = await Leasehold.open(server.url, { holder: 'dispatcher' })
  const { registry } = leasehold
  await using checker = registry.checker({ allow: { loopback: true }, everyMin: '500ms' })
  using agents = registry.watch('agents')
  await agents.ready

  const processes = new Map<string, ChildProcess>()
  const joined = next(agents, 'joined', 3)
  processes.set('ada', start(server.url, 'ada', 'translate', 'summarise'))
  processes.set('bo', start(server.url, 'bo', 'summarise'))
  processes.set('cy', start(server.url, 'cy', 'summarise'))
  await joined
  for (const { id: name, capabilities: can } of agents.instances) {
    say(`${name} has joined: ${can.join(', ')}`)
  }

  const [translator] = await registry.find('agents', { capability: 'translate' })
  say(`who can translate: ${translator?.id}`)
  const turns = [agents.pick(), agents.pick(), agents.pick()]
  for (const one of turns) say(await ask(one, '/summary'))

  const ill = next(agents, 'left')
  await ask(
    agents.all.find((one) => one.id === 'cy'),
    '/fall-ill',
  )
  const [sick] = await ill
  say(`cy has left: ${sick?.status}, ${sick?.note}; its process and its lease live on`)

  const killed = next(agents, 'left')
  const killedAt = performance.now()
  processes.get('bo')?.kill('SIGKILL')
  await killed
  const took = performance.now() - killedAt
  say(`bo has left: killed, ${took < 10_000 ? 'long before its lease would run out' : 'late'}`)

  say(`left to ask: ${agents.instances.map((one) => one.id).join(', ')}`)
  const stopped = next(agents, 'left')
  processes.get('ada')?.send('stop')
  await stopped
  say(`ada has left: stopped; to pick from: ${agents.pick()?.id ?? 'nobody'}`)

  for (const child of processes.values()) child.kill('SIGKILL')
  await checker.close()
  await leasehold.close()
  await server.close()
}

/** The next instances that join or leave. */
function next(agents: Discovery, type: 'joined' | 'left', count = 1): Promise<Instance[]> {
  const seen: Instance[] = []
  return new Promise((resolve) => {
    const end = agents.on(type, ({ instance }) => {
      seen.push(instance)
      if (seen.length < count) return
      end()
      resolve(seen)
    })
  })
}

async function ask(instance: Instance | undefined, path: string): Promise<string> {
  const response = await fetch(`http://${instance?.address}${path}`)
  return response.text()
}
