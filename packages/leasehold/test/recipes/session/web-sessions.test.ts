import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fastifyCookie from '@fastify/cookie'
import fastifySession from '@fastify/session'
import express from 'express'
import expressSession from 'express-session'
import Fastify from 'fastify'
import { afterEach, describe, expect, it } from 'vitest'
import { Leasehold, type LeaseStore } from '../../../src/index.ts'
import { systemClock } from '../../../src/port/index.ts'
import { fileStore } from '../../../src/stores/file/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../../client/faulty-store.ts'

declare module 'express-session' {
  interface SessionData {
    user: string
    visits: number
  }
}
declare module 'fastify' {
  interface Session {
    user?: string
    visits?: number
  }
}

const SECRET = 'a secret that is long enough for both of them'
const HOUR = 3600_000
const ends: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

interface Site {
  readonly url: string
  stop(): Promise<unknown>
}

/** One process of a web site with `/login`, `/visit`, `/me`, `/remember` and `/logout`. */
type Start = (leasehold: Leasehold, maxAge: number | undefined) => Promise<Site>

const startExpress: Start = async (leasehold, maxAge) => {
  const app = express()
  const store = leasehold.sessionStore({
    Store: expressSession.Store,
    user: ({ user }) => user,
  })
  const cookie = { secure: false, ...(maxAge === undefined ? {} : { maxAge }) }
  const settings = { secret: SECRET, resave: false, saveUninitialized: false, rolling: true }
  app.use(expressSession({ ...settings, store, cookie }))
  app.get('/login', (req, res) => {
    req.session.regenerate(() => {
      req.session.user = String(req.query['user'])
      res.send('welcome')
    })
  })
  app.get('/visit', (req, res) => {
    req.session.visits = (req.session.visits ?? 0) + 1
    res.send(String(req.session.visits))
  })
  app.get('/me', (req, res) => {
    res.send(req.session.user ?? 'nobody')
  })
  app.get('/remember', (req, res) => {
    req.session.cookie.maxAge = 30 * 24 * HOUR
    req.session.visits = 100
    res.send('yes')
  })
  app.get('/slow', async (req, res) => {
    await leasehold.lock('slow')
    req.session.visits = 1000
    res.send('slow')
  })
  app.get('/logout', (req, res) => {
    req.session.destroy(() => res.send('bye'))
  })
  const failed: express.ErrorRequestHandler = (error, _req, res, _next) => {
    res.status(503).send(String(error.code))
  }
  app.use(failed)
  const server = createServer(app)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: urlOf(server), stop: () => stop(server) }
}

const startFastify: Start = async (leasehold, maxAge) => {
  const app = Fastify({ forceCloseConnections: true })
  const store = leasehold.sessionStore({ user: ({ user }) => user })
  const cookie = { secure: false, ...(maxAge === undefined ? {} : { maxAge }) }
  await app.register(fastifyCookie)
  await app.register(fastifySession, { secret: SECRET, store, cookie, saveUninitialized: false })
  app.get<{ Querystring: { user: string } }>('/login', async (request) => {
    await request.session.regenerate()
    request.session.user = request.query.user
    return 'welcome'
  })
  app.get('/visit', async (request) => {
    request.session.visits = (request.session.visits ?? 0) + 1
    return String(request.session.visits)
  })
  app.get('/me', async (request) => request.session.user ?? 'nobody')
  app.get('/remember', async (request) => {
    request.session.options({ maxAge: 30 * 24 * HOUR })
    request.session.visits = 100
    return 'yes'
  })
  app.get('/slow', async (request) => {
    await leasehold.lock('slow')
    request.session.visits = 1000
    return 'slow'
  })
  app.get('/logout', async (request) => {
    await request.session.destroy()
    return 'bye'
  })
  app.setErrorHandler((error: { code?: string }, _request, reply) =>
    reply.code(503).send(String(error.code)),
  )
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { url: urlOf(app.server), stop: () => app.close() }
}

function urlOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function stop(server: Server): Promise<void> {
  server.closeAllConnections()
  return new Promise((resolve) => server.close(() => resolve()))
}

/** A browser that keeps its cookies. */
class Visitor {
  #cookie = ''
  lastCookie = ''

  async go(site: Site, path: string): Promise<string> {
    const headers = this.#cookie === '' ? {} : { cookie: this.#cookie }
    const answer = await fetch(site.url + path, { headers: { ...headers, connection: 'close' } })
    this.lastCookie = answer.headers.get('set-cookie') ?? ''
    if (this.lastCookie !== '') this.#cookie = this.lastCookie.split(';')[0]!
    return answer.text()
  }
}

/** A store and a link to it that counts writes. */
async function place(store?: LeaseStore) {
  const clock = new TestClock()
  const inner = store ?? memoryStore({ clock })
  const link = new FaultyStore(inner, clock, true)
  const leasehold = await Leasehold.open(link, { clock, holder: 'site', callTimeout: 200 })
  ends.push(() => leasehold.close())
  const writes = () => link.calls.filter((call) => call !== 'read').length
  return { clock, inner, link, leasehold, writes }
}

describe.each([
  { name: 'express-session', start: startExpress },
  { name: '@fastify/session', start: startFastify },
])('the store for $name', ({ start }) => {
  const begin: Start = async (leasehold, maxAge) => {
    const site = await start(leasehold, maxAge)
    ends.push(() => site.stop())
    return site
  }

  it('logs in, remembers and logs out', async () => {
    const { leasehold } = await place()
    const site = await begin(leasehold, HOUR)
    const ada = new Visitor()
    expect(await ada.go(site, '/me')).toBe('nobody')
    await ada.go(site, '/login?user=ada')
    expect(await ada.go(site, '/me')).toBe('ada')
    expect(await ada.go(site, '/visit')).toBe('1')
    expect(await ada.go(site, '/visit')).toBe('2')
    expect(await new Visitor().go(site, '/me')).toBe('nobody')
    expect(await ada.go(site, '/logout')).toBe('bye')
    expect(await ada.go(site, '/me')).toBe('nobody')
  })

  it('shares sessions between processes, and ends all those of a user from anywhere', async () => {
    const { inner, clock, leasehold } = await place()
    const other = await Leasehold.open(inner, { clock, holder: 'other' })
    ends.push(() => other.close())
    const [one, two] = [await begin(leasehold, HOUR), await begin(other, HOUR)]
    const [phone, laptop, bob] = [new Visitor(), new Visitor(), new Visitor()]
    await phone.go(one, '/login?user=ada')
    await laptop.go(two, '/login?user=ada')
    await bob.go(two, '/login?user=bob')
    expect(await phone.go(two, '/me')).toBe('ada')
    expect(await other.sessions('web').list('ada')).toHaveLength(2)
    expect(await other.sessions('web').endAll('ada')).toBe(2)
    expect(await phone.go(one, '/me')).toBe('nobody')
    expect(await laptop.go(one, '/me')).toBe('nobody')
    expect(await bob.go(one, '/me')).toBe('bob')
  })

  it('keeps a session that is used for longer than its maxAge, and no other', async () => {
    const { clock, leasehold } = await place()
    const site = await begin(leasehold, HOUR)
    const [busy, idle] = [new Visitor(), new Visitor()]
    await busy.go(site, '/login?user=busy')
    await idle.go(site, '/login?user=idle')
    for (let i = 0; i < 6; i++) {
      await clock.advance(HOUR / 4)
      expect(await busy.go(site, '/me')).toBe('busy')
    }
    expect(await idle.go(site, '/me')).toBe('nobody')
    expect(busy.lastCookie).toMatch(/Expires=/)
  })

  it('writes at most once per tenth of the ttl for requests that change nothing', async () => {
    const { clock, leasehold, writes } = await place()
    const site = await begin(leasehold, HOUR)
    const ada = new Visitor()
    await ada.go(site, '/login?user=ada')
    const before = writes()
    for (let i = 0; i < 60; i++) {
      expect(await ada.go(site, '/me')).toBe('ada')
      await clock.advance(HOUR / 60)
    }
    expect(writes() - before).toBeGreaterThanOrEqual(8)
    expect(writes() - before).toBeLessThanOrEqual(10)
  })

  it('gives a session the maxAge that the application sets', async () => {
    const { clock, leasehold } = await place()
    const site = await begin(leasehold, HOUR)
    const ada = new Visitor()
    await ada.go(site, '/login?user=ada')
    await ada.go(site, '/remember')
    await clock.advance(24 * HOUR)
    expect(await ada.go(site, '/me')).toBe('ada')
    expect(await ada.go(site, '/visit')).toBe('101')
    expect(await leasehold.sessions('web').list('ada')).toHaveLength(1)
  })

  it('keeps a session whose cookie has no maxAge for a day', async () => {
    const { clock, leasehold } = await place()
    const site = await begin(leasehold, undefined)
    const ada = new Visitor()
    await ada.go(site, '/login?user=ada')
    expect(ada.lastCookie).not.toMatch(/Expires=/)
    await clock.advance(24 * HOUR)
    expect(await ada.go(site, '/me')).toBe('ada')
    await clock.advance(27 * HOUR)
    expect(await ada.go(site, '/me')).toBe('nobody')
  })

  it('does not bring back a session that was ended during a request', async () => {
    const { leasehold } = await place()
    const site = await begin(leasehold, HOUR)
    const ada = new Visitor()
    await ada.go(site, '/login?user=ada')
    const held = await leasehold.lock('slow')
    const slow = ada.go(site, '/slow')
    while ((await leasehold.tryLock('slow')).conflict?.ahead !== 2) {
      await new Promise((resolve) => setImmediate(resolve))
    }
    await leasehold.sessions('web').endAll('ada')
    await held.release()
    expect(await slow).toBe('slow')
    expect(await ada.go(site, '/me')).toBe('nobody')
    expect(await leasehold.sessions('web').list('ada')).toEqual([])
  })

  it('fails in an outage, and logs nobody out', async () => {
    const { link, leasehold, clock } = await place()
    const site = await begin(leasehold, HOUR)
    const ada = new Visitor()
    await ada.go(site, '/login?user=ada')
    link.fault = () => ({ error: new Error('the link broke') })
    expect(await whileMoving(clock, ada.go(site, '/me'))).toBe('timeout')
    link.fault = () => undefined
    expect(await ada.go(site, '/me')).toBe('ada')
  })

  it('keeps sessions in a file store when its process starts again', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'leasehold-web-'))
    ends.push(() => rm(folder, { recursive: true }))
    const ada = new Visitor()
    for (const [i, path] of ['/login?user=ada', '/visit', '/visit'].entries()) {
      const store = await fileStore(folder)
      const leasehold = await Leasehold.open(store, { clock: systemClock })
      const site = await start(leasehold, HOUR)
      if (i > 0) expect(await ada.go(site, '/me')).toBe('ada')
      expect(await ada.go(site, path)).toBe(['welcome', '1', '2'][i])
      await site.stop()
      await leasehold.close()
      await store.close()
    }
  })
})

/** Advances the clock until there is an answer. */
async function whileMoving<Value>(clock: TestClock, answer: Promise<Value>): Promise<Value> {
  let answered = false
  const settled = answer.finally(() => {
    answered = true
  })
  while (!answered) {
    await clock.advance(50)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return settled
}
