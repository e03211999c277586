import { memoryStore } from 'leasehold/memory'
import { expect, it } from 'vitest'
import { parseRight } from '../../src/access/index.ts'
import { createServer } from '../../src/index.ts'

it.each([
  ['the default', {}, 200],
  ['openWithoutAccessTokens', { openWithoutAccessTokens: false }, 401],
  ['the deprecated name openWithoutTokens', { openWithoutTokens: false }, 401],
  ['the new name first', { openWithoutTokens: false, openWithoutAccessTokens: true }, 200],
])('a server without a valid access token follows %s', async (_, options, status) => {
  const store = memoryStore()
  const server = await createServer({ store, port: 0, ...options })
  const { tokens } = server.access
  await tokens.create({ name: 'ann', rights: [parseRight('all:')] })
  await tokens.revoke('ann', 'root')
  expect((await fetch(new URL('/v1/leases', server.url))).status).toBe(status)
  await server.close()
  await store.close()
})
