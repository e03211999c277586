import type { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { type TestClock, testStore } from 'leasehold/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { afterFile } from '../../../leasehold/test/setup/after-file.ts'
import { createServer } from '../../src/index.ts'
import { Scene } from '../http/scene.ts'
import { CLIENTS, httpAgent } from './clients.ts'

const MINUTE = 60_000
const purpose = 'work'

/** A server whose time stands still until it is moved. */
async function timedServer() {
  const { store, clock } = testStore()
  const server = await createServer({ store, clock, port: 0 })
  afterFile(() => server.close())
  const holders = async (key: string) => (await store.read({ key })).holders
  const mcp = (query: string) => `${server.url}/mcp?${query}`
  return { server, clock: clock as TestClock, holders, mcp }
}

describe('agents over HTTP', () => {
  it('keep their holds in silence up to the idle limit, and learn why they were lost', async () => {
    const { clock, holders, mcp } = await timedServer()
    const ada = await httpAgent('client 2', mcp('agent=ada'))
    await ada.call('acquire', { keys: ['k'], purpose })
    const patient = await httpAgent('client 2', mcp('agent=patient&idle=1h'))
    await patient.call('acquire', { keys: ['long'], purpose })
    await clock.advance(10 * MINUTE - 1000)
    expect(await holders('k')).toBe(1)
    await clock.advance(2000)
    expect(await holders('k')).toBe(0)
    expect(await holders('long')).toBe(1)
    const { data } = await ada.call('mine')
    expect(data.holds).toMatchObject([
      { state: 'lost', why: expect.stringContaining('called for 10m, the idle limit') },
    ])
  })

  it('are not idle while they listen; after the stream ends they have a minute', async () => {
    const { clock, holders, mcp, server } = await timedServer()
    const ada = await httpAgent('client 2', mcp('agent=ada'))
    await ada.call('acquire', { keys: ['k'], purpose })
    const subscription = await ada.client.listen({ resourceSubscriptions: ['leasehold://holds'] })
    await expect.poll(() => server.mcp.stats.streams).toBe(1)
    await clock.advance(60 * MINUTE)
    expect(await holders('k')).toBe(1)
    await subscription.close()
    await expect.poll(() => server.mcp.stats.streams).toBe(0)
    await clock.advance(MINUTE + 1000)
    expect(await holders('k')).toBe(0)
  })

  it('find their holds again by their name, from another connection', async () => {
    const { mcp } = await timedServer()
    const before = await httpAgent('client 2', mcp('agent=ada'))
    const { data } = await before.call('acquire', { keys: ['k'], purpose })
    await before.client.close()
    const after = await httpAgent('sdk 1', mcp('agent=ada'))
    expect((await after.call('mine')).data.holds).toMatchObject([{ hold: data.hold }])
    const released = await after.call('release', { hold: data.hold })
    expect(released.data.released).toEqual([data.hold])
  })

  it('without a name are asked for one, unless they have a session', async () => {
    const { mcp } = await timedServer()
    const nameless = await httpAgent('client 2', mcp(''))
    const refused = await nameless.call('acquire', { keys: ['k'], purpose })
    expect(refused).toMatchObject({ isError: true })
    expect(refused.text).toContain("give 'agent': a name that only you have")
    const { data } = await nameless.call('acquire', { keys: ['k'], purpose, agent: 'ada' })
    expect(data.state).toBe('held')
    expect((await nameless.call('wait', { hold: data.hold })).data.state).toBe('held')
    expect((await nameless.call('mine', { agent: 'bob' })).data.holds).toEqual([])
    expect((await nameless.call('who', { key: 'k' })).data.keys[0].holders).toMatchObject([
      { agent: 'ada' },
    ])
    const session = await httpAgent('sdk 1', mcp(''))
    expect((await session.call('mine')).data.holds).toEqual([])
    expect((await session.call('acquire', { keys: ['k2'], purpose })).data.state).toBe('held')
  })

  it('release everything when they end their session', async () => {
    const { holders, mcp } = await timedServer()
    const ada = await httpAgent('sdk 1', mcp(''))
    await ada.call('acquire', { keys: ['k'], purpose })
    await (ada.client.transport as StreamableHTTPClientTransport).terminateSession()
    expect(await holders('k')).toBe(0)
  })

  it('name their repository, because the server cannot see their files', async () => {
    const { holders, mcp } = await timedServer()
    const nowhere = await httpAgent('client 2', mcp('agent=a'))
    const refused = await nowhere.call('acquire', { paths: ['src/a.ts'], purpose })
    expect(refused.text).toContain('?repository=NAME')
    const ada = await httpAgent('client 2', mcp('agent=b&repository=shop'))
    await ada.call('acquire', { paths: ['./src//a.ts'], purpose })
    expect(await holders('repo/shop/src/a.ts')).toBe(1)
    for (const path of ['/src/a.ts', '../x', 'c:/x']) {
      const { text } = await ada.call('acquire', { paths: [path], purpose })
      expect(text).toContain('from the root of the repository')
    }
  })

  it.each(CLIENTS)('break a hold only if a person agrees, with %s', async (name) => {
    const { mcp } = await timedServer()
    const ada = await httpAgent(name, mcp('agent=ada'))
    await ada.call('acquire', { keys: ['k'], purpose: 'never ends' })
    const questions: string[] = []
    const person = (message: string) => questions.push(message) > 1
    const bob = await httpAgent(name, mcp('agent=bob'), { person })
    const attempt = () => bob.call('break_hold', { key: 'k', why: 'stuck', after: '1s' })
    const refused = await attempt()
    expect(refused).toMatchObject({ isError: true })
    expect(refused.text).toBe('the person did not agree. Wait, or do other work')
    expect(questions[0]).toMatch(/Agent bob wants to take "k" away from ada \(never ends/)
    expect((await attempt()).data.broken).toMatchObject([{ agent: 'ada' }])
  })

  it('of another web page are refused', async () => {
    const { mcp } = await timedServer()
    const headers = { origin: 'https://elsewhere.example', 'content-type': 'application/json' }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
    const answer = await fetch(mcp('agent=a'), { method: 'POST', headers, body })
    expect(answer.status).toBe(403)
  })
})

describe.each(CLIENTS)('the access token of an agent, with %s', (client) => {
  let scene: Scene
  beforeAll(async () => {
    scene = await Scene.open()
  })
  afterAll(() => scene.close())
  const agent = async (name: string, ...rights: string[]) => {
    const headers = { authorization: `Bearer ${await scene.token(name, ...rights)}` }
    return httpAgent(client, `${scene.server.url}/mcp?agent=${name}`, { headers })
  }

  it('limits what it can hold and read, and its end ends what is held', async () => {
    const ann = await agent('ann', 'claim,read:a/')
    const bob = await agent('bob', 'claim,read:b/', 'admin,read:a/')
    const { data } = await ann.call('acquire', { keys: ['a/1'], purpose })
    expect(data.state).toBe('held')
    const other = await ann.call('acquire', { keys: ['b/1'], purpose })
    expect(other.text).toContain('"ann" has no right to claim "b/1"')
    expect(other.text).toContain('do not work around it')
    expect((await ann.call('who', { key: 'b/1' })).text).toContain('no right to read')
    // A handle is good for its own principal only.
    expect((await bob.call('release', { hold: data.hold })).text).toContain('no such hold of yours')
    expect((await bob.call('who', { key: 'a/1' })).data.keys[0].holders).toMatchObject([
      { agent: 'ann' },
    ])
    await scene.server.access.tokens.revoke('ann', 'test')
    await expect
      .poll(async () => (await bob.call('who', { key: 'a/1' })).data.keys[0].holders)
      .toEqual([])
    await expect(ann.call('mine')).rejects.toThrow()
    await expect(httpAgent(client, `${scene.server.url}/mcp?agent=x`)).rejects.toThrow()
  })
})
