import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Notice } from '../../src/port/index.ts'
import { remoteStore } from '../../src/stores/remote/index.ts'
import { TcpProxy } from '../faults/index.ts'
import { Served } from './served.ts'

describe('a store on a server that went away', () => {
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
    'interrupts a watch of %j that was opened long after',
    async (target) => {
      line.heal()
      const store = await remoteStore(`http://127.0.0.1:${line.port}`, { timeout: 400 })
      line.reset()
      const heard: Notice[] = []
      // Those that were open when it went are told when the time-out is over, and that is past here.
      await new Promise((resolve) => setTimeout(resolve, 700))
      store.watch(target, (notice) => heard.push(notice))
      await expect.poll(() => heard.map(({ type }) => type)).toEqual(['interrupted'])
      await store.close()
    },
  )
})

describe('what a server is told of whoever asks', () => {
  const refused = (options: object) =>
    remoteStore('http://127.0.0.1:1', { timeout: 100, ...options }).then(
      () => undefined,
      ({ code, message }) => ({ code, message }),
    )

  it.each([['secret\n'], ['sécret — long']])(
    'is checked: a token of %j is refused by name, and not shown',
    async (token) => {
      const { code, message } = (await refused({ token }))!
      expect(code).toBe('invalid-argument')
      expect(message).toMatch(/^token /)
      expect(message).not.toContain('cret')
    },
  )

  it.each([[{ 'x y': 'a' }], [{ x: 'a\nb' }], [{ x: undefined }]])(
    'is checked: headers of %j are refused by name',
    async (headers) => {
      const { code, message } = (await refused({ headers }))!
      expect(code).toBe('invalid-argument')
      expect(message).toMatch(/^headers? /)
    },
  )
})
