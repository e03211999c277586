import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { Agents } from '../../../src/logs/consul/client/index.ts'
import { systemClock } from '../../../src/port/index.ts'

const servers: Server[] = []

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

/** An agent that gives this answer to each request, or none. */
async function agent(answer?: { readonly status: number; readonly body: string }): Promise<string> {
  const server = createServer((_request, response) => {
    if (answer) response.writeHead(answer.status, { 'x-consul-index': '7' }).end(answer.body)
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const agentsAt = (...endpoints: string[]) =>
  new Agents({ endpoints, token: undefined, clock: systemClock, timeout: 200 })

describe('the agents of Consul', () => {
  it('are asked one after the other if one gives no answer in time', async () => {
    const row = JSON.stringify([{ Key: 'a', Value: 'aGk=', ModifyIndex: 7 }])
    const agents = agentsAt(await agent(), await agent({ status: 200, body: row }))
    expect(await agents.read('a')).toEqual({
      pair: { index: 7, value: Buffer.from('hi') },
      index: 7,
    })
  })

  it('are not asked again after a refusal', async () => {
    const refusing = await agent({ status: 403, body: 'Permission denied' })
    await expect(agentsAt(refusing, await agent()).read('a')).rejects.toMatchObject({
      code: 'HTTP 403',
    })
  })
})
