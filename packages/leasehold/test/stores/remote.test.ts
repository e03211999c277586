import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Notice } from '../../src/port/index.ts'
import { remoteStore } from '../../src/stores/remote/index.ts'
import { TcpProxy } from '../faults/index.ts'
import { Served } from './served.ts'

describe('a store on an unreachable server', () => {
  let server: Served
  let line: TcpProxy

  beforeAll(async () => {
    server = await Served.on('memory:')
    line = await TcpProxy.to(Number(new URL(server.url).port))
  })

  afterAll(async () => {
    await line?.close()
    await server?.end()
  })

  it.each([[{ lease: '1.1' }], [{ prefix: 'k/' }]])(
    'interrupts a watch of %j that is opened after the timeout',
    async (target) => {
      line.heal()
      const store = await remoteStore(`http://127.0.0.1:${line.port}`, { timeout: 400 })
      line.reset()
      const notices: Notice[] = []
      // Open watches are interrupted after the timeout. It has passed here.
      await new Promise((resolve) => setTimeout(resolve, 700))
      store.watch(target, (notice) => notices.push(notice))
      // A busy machine may need more than the default of one second.
      await expect
        .poll(() => notices.map(({ type }) => type), { timeout: 10_000 })
        .toEqual(['interrupted'])
      await store.close()
    },
  )
})

describe('the credentials and headers of a store', () => {
  const refused = (options: object) =>
    remoteStore('http://127.0.0.1:1', { timeout: 100, ...options }).then(
      () => undefined,
      ({ code, message }) => ({ code, message }),
    )

  it.each([['secret\n'], ['sécret — long']])(
    'are checked: an invalid access token %j is refused without being shown',
    async (accessToken) => {
      const { code, message } = (await refused({ accessToken }))!
      expect(code).toBe('invalid-argument')
      expect(message).toMatch(/^accessToken /)
      expect(message).not.toContain('cret')
    },
  )

  it.each([[{ 'x y': 'a' }], [{ x: 'a\nb' }], [{ x: undefined }]])(
    'are checked: invalid headers %j are refused',
    async (headers) => {
      const { code, message } = (await refused({ headers }))!
      expect(code).toBe('invalid-argument')
      expect(message).toMatch(/^headers? /)
    },
  )
})
