import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Leasehold } from 'leasehold'
import { memoryStore } from 'leasehold/memory'
import { expect, it } from 'vitest'
import { createServer } from '../../src/index.ts'

it('runs the health checks on one server at a time, and on the next when that one stops', async () => {
  let healthy = true
  const service = createHttpServer((_request, response) => {
    response.writeHead(healthy ? 200 : 503).end()
  })
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
  const address = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
  const store = memoryStore()
  const checks = { allow: { loopback: true }, everyMin: 50, ttl: 1000 }
  const first = await createServer({ store, port: 0, checks })
  const second = await createServer({ store, port: 0, checks })
  const leasehold = await Leasehold.open(second.url)
  expect((await store.read({ leases: true })).leases).toEqual([])
  const watched = leasehold.registry.watch('embedder', {
    status: ['passing', 'warning', 'critical'],
  })
  const status = () => watched.all[0]?.status
  await leasehold.registry.register('embedder', {
    address,
    check: { http: '/health', every: 500, timeout: 500, down: 2, up: 1 },
  })
  await expect.poll(status, { timeout: 10_000 }).toBe('passing')
  healthy = false
  await expect.poll(status, { timeout: 10_000 }).toBe('critical')

  expect([first.checking, second.checking]).toEqual([true, false])

  healthy = true
  await first.close()
  await expect.poll(() => second.checking, { timeout: 10_000 }).toBe(true)
  await expect.poll(status, { timeout: 10_000 }).toBe('passing')
  await leasehold.close()
  await second.close()
  await store.close()
  service.close()
})
