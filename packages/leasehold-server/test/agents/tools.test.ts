import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Place, type ServerProcess } from '../setup/server-process.ts'
import { type Agent, CLIENTS, httpAgent, startAgent, TRANSPORTS } from './clients.ts'

const place = new Place()
let server: ServerProcess
beforeAll(async () => {
  server = await place.server('memory:')
}, 60_000)
afterAll(() => place.clean())

const WAYS = CLIENTS.flatMap((client) => TRANSPORTS.map((transport) => ({ client, transport })))

describe.each(WAYS)('the tools for $client over $transport', ({ client, transport }) => {
  const name = `${client}/${transport}`
  /** Names of pools and agents have no spaces. */
  const short = name.replaceAll(/\W/g, '-')
  const [adaName, bobName] = [`ada-${short}`, `bob-${short}`]
  const start = (agent: string) =>
    transport === 'stdio'
      ? startAgent(client, ['--server', server.url, '--agent', agent])
      : httpAgent(client, `${server.url}/mcp?agent=${agent}`)
  let ada: Agent
  let bob: Agent
  beforeAll(async () => {
    ada = await start(adaName)
    bob = await start(bobName)
  }, 60_000)
  afterEach(() => Promise.all([ada, bob].map((each) => each.call('release', { all: true }))))
  afterAll(() => Promise.all([ada.close(), bob.close()]))

  it('are described: each has schemas, annotations and a title', async () => {
    const { tools } = await ada.client.listTools()
    expect(tools.map((tool: { name: string }) => tool.name).sort()).toEqual([
      'acquire',
      'agents',
      'announce',
      'ask_back',
      'break_hold',
      'claim_next',
      'mine',
      'once',
      'release',
      'take',
      'wait',
      'who',
    ])
    for (const tool of tools) {
      expect(tool).toMatchObject({
        title: expect.any(String),
        inputSchema: { type: 'object', additionalProperties: false },
        outputSchema: { type: 'object' },
        annotations: { readOnlyHint: expect.any(Boolean) },
      })
      expect(tool.description.length).toBeGreaterThan(40)
    }
    const prompt = await ada.client.getPrompt({ name: 'work-in-a-fleet' })
    expect(prompt.messages[0].content.text).toContain('claim_next')
  })

  it('hand a key over: the refusal says who, since when, until when, what for and what next', async () => {
    const key = `${name}/deploy`
    const held = await ada.call('acquire', { keys: [key], purpose: 'roll out 1.2' })
    expect(held.data).toMatchObject({ state: 'held', token: expect.any(Number), for: [key] })

    const refused = await bob.call('acquire', {
      keys: [key],
      purpose: 'roll out 1.3',
      queue: false,
    })
    expect(refused.data).toMatchObject({ state: 'busy' })
    const [ahead] = refused.data.ahead
    expect(ahead).toMatchObject({ agent: adaName, purpose: 'roll out 1.2', key })
    expect(Date.parse(ahead.until) - Date.parse(ahead.since)).toBe(8 * 3_600_000)
    expect(refused.data.next).toMatch(/try again later/)

    const waiting = await bob.call('acquire', { keys: [key], purpose: 'roll out 1.3', wait: 0 })
    expect(waiting.data).toMatchObject({
      state: 'waiting',
      position: 1,
      ahead: [{ agent: adaName }],
    })
    expect(waiting.data.next).toContain(waiting.data.hold)

    await bob.call('ask_back', { key, why: 'the demo is at noon' })
    const mine = await ada.call('mine')
    expect(mine.data.holds).toMatchObject([{ hold: held.data.hold, state: 'held' }])
    expect(mine.data.notices).toMatchObject([
      {
        about: 'asked-back',
        hold: held.data.hold,
        text: expect.stringContaining('the demo is at noon'),
      },
      {
        about: 'ceiling',
        text: expect.stringContaining(transport === 'HTTP' ? '10m idle' : '2h idle'),
      },
    ])

    const turn = bob.call('wait', { hold: waiting.data.hold, wait: 50 })
    await ada.call('release', { hold: held.data.hold })
    const { data } = await turn
    expect(data).toMatchObject({ state: 'held', hold: waiting.data.hold })
    expect(data.token).toBeGreaterThan(held.data.token)

    const { data: who } = await ada.call('who', { key })
    expect(who.keys[0].holders).toMatchObject([{ agent: bobName, purpose: 'roll out 1.3' }])
    expect(who.history).toMatchObject([{ holder: adaName, end: 'released' }])
  })

  // Progress takes seconds, so each client and each transport is tested once.
  it.runIf((client === 'client 2') === (transport === 'stdio'))(
    'send progress while they wait, if asked',
    async () => {
      const key = `${name}/slow`
      await ada.call('acquire', { keys: [key], purpose: 'first' })
      const messages: string[] = []
      const onprogress = ({ message }: { message?: string }) => messages.push(message ?? '')
      const { data } = await ada.call(
        'acquire',
        { keys: [key], purpose: 'second', wait: 6 },
        { onprogress },
      )
      // A second hold of the same connection is not the first one: it waits for it, and says so.
      expect(data).toMatchObject({ state: 'waiting' })
      expect(data.next).toContain('You wait for yourself')
      expect(messages).toEqual([expect.stringContaining(`${adaName} has ${key} since`)])
    },
    30_000,
  )

  it('answer wrong input so that a model can correct itself', async () => {
    const wrong = async (tool: string, given: Record<string, unknown>) => {
      const { isError, text } = await ada.call(tool, given)
      expect(isError).toBe(true)
      return text
    }
    expect(await wrong('acquire', { purpose: 'x' })).toContain(
      "give keys, such as ['deploy/staging']",
    )
    expect(await wrong('acquire', { keys: ['a'] })).toContain('purpose')
    expect(await wrong('acquire', { key: 'a', purpose: 'x' })).toContain('key')
    expect(await wrong('acquire', { keys: ['a'], purpose: 'x', wait: 3600 })).toContain('50')
    expect(await wrong('wait', { hold: 'hold-x' })).toContain('no such hold')
    expect(await wrong('release', {})).toContain('give either hold or all: true')
    expect(await wrong('who', {})).toContain('give one of key')
    expect(await wrong('break_hold', { key: 'a', path: 'b', why: 'x' })).toContain(
      'give one of key',
    )
    expect(await wrong('ask_back', { key: 'free', why: 'x' })).toContain(
      'nobody holds "free": call acquire',
    )
    expect(await wrong('take', { pool: `${short}-none`, purpose: 'x' })).toContain('pool')
    const invalid = { code: -32602 }
    await expect(ada.client.readResource({ uri: 'leasehold://keyz' })).rejects.toMatchObject(
      invalid,
    )
    await expect(ada.client.readResource({ uri: 'leasehold://keys/50%' })).rejects.toMatchObject({
      ...invalid,
      message: expect.stringContaining('Write %25 for %'),
    })
    if (client === 'client 2') return
    await expect(ada.follow(['leasehold://keyz'], () => {})).rejects.toMatchObject({
      ...invalid,
      message: expect.stringContaining('subscribe to leasehold://holds'),
    })
  })

  it('do a task once: the next agent gets the result', async () => {
    const task = `${name}/migrate`
    const { data } = await ada.call('once', { name: task })
    expect(data.state).toBe('held')
    await ada.call('release', { hold: data.hold, done: true, result: { rows: 7 } })
    const again = await ada.call('once', { name: task })
    expect(again.data).toMatchObject({ state: 'done', result: { rows: 7 }, done_by: adaName })
    const next = await ada.call('claim_next', { keys: [task, `${name}/other`] })
    expect(next.data).toMatchObject({ state: 'held', for: [`${name}/other`], skipped: { done: 1 } })
  })

  it('take from a pool, and announce what they do', async () => {
    const resources = [{ name: '5170' }]
    const pool = `${short}-ports`
    const first = await ada.call('take', { pool, resources, purpose: 'dev server' })
    expect(first.data).toMatchObject({ state: 'held', resources: ['5170'] })
    const second = await ada.call('take', { pool, purpose: 'tests', wait: 0, agent: 'sub' })
    expect(second.data).toMatchObject({ state: 'waiting', ahead: [{ agent: adaName }] })
    await ada.call('release', { hold: first.data.hold })
    expect((await ada.call('wait', { hold: second.data.hold })).data.resources).toEqual(['5170'])
    // The other agents of a connection keep what they have, and are named.
    const left = await ada.call('release', { all: true })
    expect(left.data).toMatchObject({ released: [], next: expect.stringContaining('still have 1') })
    const all = await ada.call('release', { all: true, agent: 'sub' })
    expect(all.data.released).toEqual([second.data.hold])

    await ada.call('announce', { doing: 'the checkout', capabilities: ['css'] })
    await ada.call('announce', { doing: 'the basket' })
    const { data } = await ada.call('agents')
    const found = data.agents.find((it: { agent: string }) => it.agent === adaName)
    expect(found).toMatchObject({ doing: 'the basket', capabilities: ['css'] })
  })

  it('tell subscribers when holds, keys or agents change', async () => {
    const updates: string[] = []
    const seen = (uri: string) => expect.poll(() => updates, { timeout: 10_000 }).toContain(uri)
    const uris = ['leasehold://holds', 'leasehold://agents', `leasehold://keys/${short}/sub`]
    await ada.follow(uris, (uri) => updates.push(uri))
    // Each begins with an update: something may have changed before its watch began.
    for (const uri of uris) await seen(uri)
    updates.length = 0

    await bob.call('acquire', { keys: [`${short}/sub/1`], purpose: 'to be seen' })
    await seen(uris[2]!)
    await seen(uris[1]!)
    const { contents } = await ada.client.readResource({ uri: uris[2] })
    expect(JSON.parse(contents[0].text)).toMatchObject([
      { key: `${short}/sub/1`, holders: [{ agent: bobName, purpose: 'to be seen' }] },
    ])
    expect(updates).not.toContain(uris[0])

    const { data } = await ada.call('acquire', { keys: [`${short}/mine`], purpose: 'mine' })
    await seen(uris[0]!)
    updates.length = 0
    await bob.call('ask_back', { key: `${short}/mine`, why: 'the demo' })
    await seen(uris[0]!)
    const own = await ada.client.readResource({ uri: uris[0] })
    expect(JSON.parse(own.contents[0].text)).toMatchObject({
      holds: [{ hold: data.hold, state: 'held' }],
      notices: [{ about: 'asked-back' }, { about: 'ceiling' }],
    })
  }, 30_000)
})
