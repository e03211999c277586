import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { Leasehold } from 'leasehold'
import type { LeaseStore } from 'leasehold/port'
import { remoteStore } from 'leasehold/remote'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { Place, type ServerProcess } from '../../setup/server-process.ts'
import { describeInBrowser, useBrowser, Visit } from './browser.ts'

/** What a page uses. The page of a user has this in its own modules. */
const PAGE = `
import { Leasehold } from 'leasehold'
import { connect, withLock, tryLock } from 'leasehold/client'
import { remoteStore } from 'leasehold/remote'
Object.assign(globalThis, { Leasehold, connect, withLock, tryLock, remoteStore, seen: [] })
`

/** The script of a page, bundled as for any browser. */
async function bundleOfPage(): Promise<string> {
  const { outputFiles } = await build({
    stdin: {
      contents: PAGE,
      resolveDir: fileURLToPath(new URL('../../..', import.meta.url)),
    },
    ...{ bundle: true, minify: true, write: false, platform: 'browser', format: 'iife' },
    external: ['croner', 'ioredis', 'pg', '@nats-io/transport-node'],
  })
  return outputFiles[0]!.text
}

/** Serves the page, and forwards streams to the server, as a reverse proxy does. */
class PageServer {
  readonly #http: Server
  readonly #sockets = new Set<Socket>()
  isCut = false

  constructor(script: string, port: () => number) {
    this.#http = createServer((request, response) => {
      const isScript = request.url === '/page.js'
      response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html')
      response.end(
        isScript
          ? script
          : '<!doctype html><link rel=icon href=data:,><script src=/page.js></script>',
      )
    })
    this.#http.on('upgrade', ({ method, url, rawHeaders }, near: Socket) => {
      if (this.isCut) {
        near.destroy()
        return
      }
      const far = connect(port(), '127.0.0.1')
      const lines = [`${method} ${url} HTTP/1.1`]
      for (let at = 0; at < rawHeaders.length; at += 2) {
        lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`)
      }
      far.write(`${lines.join('\r\n')}\r\n\r\n`)
      far.pipe(near).pipe(far)
      for (const socket of [near, far]) {
        this.#sockets.add(socket)
        socket.on('error', () => {})
        socket.on('close', () => this.#sockets.delete(socket.destroy()))
      }
    })
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#http.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`
  }

  /** Ends every stream, and refuses new ones. */
  cut(): void {
    this.isCut = true
    for (const socket of this.#sockets) socket.destroy()
  }

  close(): void {
    this.cut()
    this.#http.close()
    this.#http.closeAllConnections()
  }
}

describeInBrowser('the client in a page', () => {
  const browser = useBrowser()
  const place = new Place()
  let server: ServerProcess
  let proxy: PageServer
  let url: string
  let others: Leasehold
  let store: LeaseStore
  let visit: Visit
  let script: string

  beforeAll(async () => {
    script = await bundleOfPage()
    server = await place.server('memory:')
    others = await Leasehold.open(server.url, { holder: 'a server process' })
    store = await remoteStore(server.url)
  })
  afterAll(async () => {
    await store?.close()
    await others?.close()
    await place.clean()
  })
  beforeEach(async () => {
    proxy = new PageServer(script, () => server.port)
    url = await proxy.listen()
    visit = await Visit.open(browser(), url)
  })
  afterEach(async () => {
    await visit.end()
    proxy.close()
  })

  /** Runs code in the page. `leasehold` is its client, on its own origin. */
  function inPage<Result>(code: string): Promise<Result> {
    return visit.page.evaluate(`(async () => { ${code} })()`) as Promise<Result>
  }

  const seen = () => inPage<string[]>('return seen')

  it('locks, waits in the queue behind a process, and releases', async () => {
    const first = await others.lock('a', { ttl: '60s' })
    const { token } = first
    const held = inPage<number>(`
      globalThis.leasehold = await Leasehold.open(location.origin, { holder: 'a page' })
      const refused = await leasehold.tryLock('a')
      seen.push('held by ' + refused.conflict.holder)
      globalThis.lock = await leasehold.lock('a', { wait: '60s' })
      return lock.token`)
    await expect.poll(async () => (await store.read({ key: 'a' })).claims.length).toBe(2)
    await first.release()
    expect(await held).toBeGreaterThan(token)
    expect(await seen()).toEqual(['held by a server process'])
    expect((await store.read({ key: 'a' })).claims).toMatchObject([{ holder: 'a page' }])
    await inPage('await lock.release()')
    expect((await store.read({ key: 'a' })).claims).toEqual([])
    await inPage('await leasehold.close()')
  })

  it('watches what processes do', async () => {
    await inPage(`
      globalThis.store = await remoteStore(location.origin)
      store.watch({ prefix: 'watched/' }, (notice) => {
        seen.push(...(notice.events ?? [notice]).map(({ type, key }) => type + ' ' + key))
      })`)
    await expect.poll(seen).toEqual(['watching undefined'])
    const lock = await others.lock('watched/1', { ttl: '60s' })
    await lock.release()
    await expect
      .poll(seen)
      .toEqual(['watching undefined', 'claimed watched/1', 'held watched/1', 'removed watched/1'])
    await inPage('await store.close()')
  })

  it('hears at once, with the reason, that its lock was revoked', async () => {
    await inPage(`
      globalThis.client = await connect(location.origin, { holder: 'a page' })
      void withLock(client, 'b', { ttl: '60s' }, (lock) => new Promise((resolve) =>
        lock.signal.addEventListener('abort', () => {
          seen.push(lock.signal.reason.code + ': ' + lock.signal.reason.message)
          resolve()
        }))).catch(() => {})`)
    await expect.poll(async () => (await store.read({ key: 'b' })).claims.length).toBe(1)
    const { lease } = (await store.read({ key: 'b' })).claims[0]!
    await store.revoke({ target: { lease }, by: 'an operator', why: 'disk full' })
    await expect.poll(seen).toEqual([expect.stringMatching(/disk full/)])
    await inPage('await client.close()')
  })

  it('stops before its ttl is over if it cannot reach the server, and locks again afterwards', async () => {
    visit.expected.push(/WebSocket connection to/)
    await inPage(`
      globalThis.leasehold = await Leasehold.open(location.origin, { holder: 'a page' })
      const lock = await leasehold.lock('c', { ttl: '3s' })
      lock.signal.addEventListener('abort', () => seen.push('stopped ' + lock.signal.reason.code))`)
    const next = others.lock('c', { ttl: '60s' })
    proxy.cut()
    const lock = await next
    const { token } = lock
    // The page stopped before the process could hold the key.
    expect(await seen()).toEqual([expect.stringMatching(/^stopped /)])
    await lock.release()
    proxy.isCut = false
    expect(
      await inPage(`return (await leasehold.lock('c', { wait: '60s' })).token`),
    ).toBeGreaterThan(token)
    await inPage('await leasehold.close()')
  })
})
