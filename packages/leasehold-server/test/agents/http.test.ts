import type { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { remoteStore } from 'leasehold/remote'
import { type TestClock, testStore } from 'leasehold/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { afterFile } from '../../../leasehold/test/setup/after-file.ts'
import { createServer } from '../../src/index.ts'
import { Scene } from '../http/scene.ts'
import { CLIENTS, httpAgent } from './clients.ts'

const MINUTE = 60_000
const purpose = 'work'

const INITIALIZE = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'plain', version: '1' },
}

/** The requests of a client of 2025 that opens no stream to listen. */
async function withoutListening(url: string, requests: readonly object[], session = '') {
  const answers = []
  for (const [id, request] of requests.entries()) {
    const answer = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(session && { 'mcp-session-id': session }),
      },
      body: JSON.stringify({ jsonrpc: '2.0', id, ...request }),
    })
    session ||= answer.headers.get('mcp-session-id') ?? ''
    const type = answer.headers.get('content-type')
    answers.push({ session, status: answer.status, type, text: await answer.text() })
  }
  return answers
}

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

  it('without a name are there for as long as the stream of their session is open', async () => {
    const { clock, holders, mcp, server } = await timedServer()
    const ada = await httpAgent('sdk 1', mcp(''))
    await expect.poll(() => server.mcp.stats.streams).toBe(1)
    await ada.call('acquire', { keys: ['k'], purpose })
    await clock.advance(60 * MINUTE)
    expect(await holders('k')).toBe(1)
    await ada.client.close()
    await expect.poll(() => server.mcp.stats.streams).toBe(0)
    await clock.advance(MINUTE + 1000)
    expect(await holders('k')).toBe(0)
  })

  it('that never listen keep their holds after a call that was answered by a stream', async () => {
    const { clock, holders, mcp } = await timedServer()
    const answers = await withoutListening(mcp('agent=plain'), [
      { method: 'initialize', params: INITIALIZE },
      { method: 'tools/call', params: { name: 'acquire', arguments: { keys: ['k'], purpose } } },
    ])
    expect(answers.at(-1)!.type).toContain('text/event-stream')
    expect(answers.at(-1)!.text).toContain('held')
    await clock.advance(9 * MINUTE)
    expect(await holders('k')).toBe(1)
    await clock.advance(2 * MINUTE)
    expect(await holders('k')).toBe(0)
  })

  it('lose a session that they do not use for an hour, when another begins', async () => {
    const { clock, mcp } = await timedServer()
    const [first] = await withoutListening(mcp('agent=a'), [
      { method: 'initialize', params: INITIALIZE },
    ])
    const call = { method: 'tools/call', params: { name: 'mine', arguments: {} } }
    const isKnown = async () => {
      const [answer] = await withoutListening(mcp('agent=a'), [call], first!.session)
      return answer!.status !== 404
    }
    await clock.advance(59 * MINUTE)
    expect(await isKnown()).toBe(true)
    await clock.advance(59 * MINUTE)
    await httpAgent('sdk 1', mcp('agent=b'))
    expect(await isKnown()).toBe(true)
    await clock.advance(61 * MINUTE)
    expect(await isKnown()).toBe(true)
    await clock.advance(61 * MINUTE)
    await httpAgent('sdk 1', mcp('agent=c'))
    expect(await isKnown()).toBe(false)
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

  it.each(CLIENTS)(
    'ask again if another holds it after the person agreed, with %s',
    async (name) => {
      const { holders, mcp } = await timedServer()
      const ada = await httpAgent(name, mcp('agent=ada'))
      const cy = await httpAgent(name, mcp('agent=cy'))
      const { data } = await ada.call('acquire', { keys: ['k'], purpose: 'first' })
      const questions: string[] = []
      const person = async (message: string) => {
        questions.push(message)
        if (questions.length > 1) return false
        await ada.call('release', { hold: data.hold })
        await cy.call('acquire', { keys: ['k'], purpose: 'second' })
        return true
      }
      const bob = await httpAgent(name, mcp('agent=bob'), { person })
      const refused = await bob.call('break_hold', { key: 'k', why: 'stuck', after: '1s' })
      expect(refused.text).toContain('the person did not agree')
      expect(questions).toEqual([
        expect.stringContaining('ada (first'),
        expect.stringContaining('cy (second'),
      ])
      expect(await holders('k')).toBe(1)
    },
  )

  it('tell the person what else ends with a hold of another program', async () => {
    const { server, mcp } = await timedServer()
    const store = await remoteStore(server.url)
    afterFile(() => store.close())
    const claims = [{ key: 'k' }, { key: 'also' }]
    await store.grant({ holder: 'program', ttl: 30_000, claims: [claims[0]!] }).then((granted) => {
      if (granted.outcome !== 'granted') throw new Error(granted.outcome)
      return store.claim({ lease: granted.lease, claims: [claims[1]!] })
    })
    const questions: string[] = []
    const person = (message: string) => questions.push(message) < 0
    const bob = await httpAgent('client 2', mcp('agent=bob'), { person })
    await bob.call('break_hold', { key: 'k', why: 'stuck' })
    expect(questions).toEqual([expect.stringMatching(/program .*With it they lose also\.$/)])
  })

  it('give an idle limit that the server can keep', async () => {
    const { mcp } = await timedServer()
    for (const idle of ['900ms', '3h', 'x']) {
      const [answer] = await withoutListening(mcp(`agent=a&idle=${idle}`), [{ method: 'ping' }])
      expect(answer).toMatchObject({ status: 400, text: expect.stringContaining('idle is') })
    }
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
