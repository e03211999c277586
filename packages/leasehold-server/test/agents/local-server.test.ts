import { execFileSync } from 'node:child_process'
import { createServer } from 'node:net'
import { afterAll, expect, it } from 'vitest'
import { Place } from '../setup/server-process.ts'
import { type Agent, startAgent } from './clients.ts'

const place = new Place()
afterAll(() => place.clean())

async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve))
  const { port } = probe.address() as { port: number }
  await new Promise((resolve) => probe.close(resolve))
  return port
}

/** The process that listens on a port. */
function listenerOn(port: number): number {
  const list = execFileSync('ss', ['-tlnpH', `sport = :${port}`], { encoding: 'utf8' })
  return Number(/pid=(\d+)/.exec(list)?.[1])
}

const acquire = (agent: Agent, key: string) =>
  agent.call('acquire', { keys: [key], purpose: 'x', queue: false })

it('agents without a server start one together, and again if it dies; what is done stays done', async () => {
  const port = await freePort()
  const args = ['--port', String(port), '--data', await place.folder(), '--timeout', '20s']
  const started = ['ada', 'bob', 'cy'].map((name) =>
    startAgent('client 2', [...args, '--agent', name]),
  )
  const [ada, bob] = (await Promise.all(started)) as [Agent, Agent, Agent]
  const server = listenerOn(port)
  try {
    const { data } = await ada.call('once', { name: 'migrate' })
    await ada.call('release', { hold: data.hold, done: true, result: 7 })
    const held = await acquire(ada, 'k')
    expect(held.data.state).toBe('held')
    expect((await acquire(bob, 'k')).data).toMatchObject({
      state: 'busy',
      ahead: [{ agent: 'ada' }],
    })

    process.kill(server, 'SIGKILL')
    await expect.poll(() => listenerOn(port), { timeout: 40_000 }).not.toBe(server)
    await expect.poll(() => listenerOn(port), { timeout: 40_000 }).toBeGreaterThan(0)
    // The store is a folder, and the agents reconnect: what was held is still held.
    const state = async (agent: Agent) => (await acquire(agent, 'k')).data
    await expect
      .poll(() => state(bob), { timeout: 40_000, interval: 100 })
      .toMatchObject({
        state: 'busy',
        ahead: [{ agent: 'ada' }],
      })
    await ada.call('release', { hold: held.data.hold })
    expect((await state(bob)).state).toBe('held')
    const done = await bob.call('once', { name: 'migrate' })
    expect(done.data).toMatchObject({ state: 'done', result: 7 })
  } finally {
    await Promise.all((await Promise.all(started)).map((agent) => agent.close()))
    process.kill(listenerOn(port), 'SIGTERM')
  }
}, 120_000)
