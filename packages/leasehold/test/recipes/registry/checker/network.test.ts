import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { Leasehold } from '../../../../src/index.ts'

describe('health checks, in real time and over a real network', () => {
  it('removes an instance whose server fails, and brings it back', async () => {
    let code = 200
    const server = createServer((_, response) => response.writeHead(code).end())
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    await using leasehold = await Leasehold.open('memory:')
    const { registry } = leasehold
    const { port } = server.address() as AddressInfo
    await registry.register('s', {
      address: `127.0.0.1:${port}`,
      // A generous timeout: on a busy machine a few milliseconds are not enough.
      check: { http: '/health', every: '300ms', down: 2, up: 2 },
    })
    const watch = registry.watch('s')
    await watch.ready
    await using _ = registry.checker({ allow: { loopback: true }, everyMin: '10ms', brake: false })
    const left = new Promise((resolve) => watch.on('left', resolve))
    code = 500
    expect(await left).toMatchObject({ instance: { status: 'critical', note: 'HTTP 500' } })
    const joined = new Promise((resolve) => watch.on('joined', resolve))
    code = 200
    expect(await joined).toMatchObject({ instance: { status: 'passing' } })
    server.close()
  })

  it('keeps an instance whose check is not allowed, and says that it is not checked', async () => {
    await using leasehold = await Leasehold.open('memory:')
    const { registry } = leasehold
    const check = { tcp: true, every: '20ms', down: 1 } as const
    await registry.register('s', { address: '127.0.0.1:8080', check })
    const watch = registry.watch('s')
    await watch.ready
    await using _ = registry.checker({ everyMin: '10ms' })
    const change = await new Promise((resolve) => watch.on('changed', resolve))
    expect(change).toMatchObject({
      instance: {
        status: 'warning',
        note: expect.stringMatching(/^not checked: .*loopback addresses are not allowed here/),
      },
    })
    expect(watch.all).toHaveLength(1)
  })
})
