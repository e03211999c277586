// Run it: npm run build && node examples/dist/login-session.js
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Leasehold, type Sessions } from 'leasehold'

/**
 * A login session with nothing but node:http. Sessions live in a file store: they survive a restart
 * of the server, end when they are not used, sooner on a public computer, and can be ended
 * everywhere at once.
 */
interface Visits {
  readonly count: number
}

async function respond(
  sessions: Sessions<Visits>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const say = (status: number, text: string) => response.writeHead(status).end(text)
  const url = new URL(request.url ?? '/', 'http://localhost')
  if (url.pathname === '/login') {
    const user = url.searchParams.get('user') ?? 'nobody'
    const ttl = url.searchParams.has('public') ? '1s' : '20m'
    const session = await sessions.create({ user, data: { count: 0 }, ttl })
    response.setHeader('set-cookie', `sid=${session.id}; HttpOnly; SameSite=Strict`)
    say(200, `hello ${user}`)
    return
  }
  const id = /sid=([^;]*)/.exec(request.headers.cookie ?? '')?.[1] ?? ''
  const session = await sessions.get(id)
  if (session === undefined) {
    say(401, 'please log in')
  } else if (url.pathname === '/logout-everywhere') {
    say(200, `${await sessions.endAll(session.user!)} sessions ended`)
  } else {
    const count = session.data.count + 1
    await session.save({ count })
    say(200, `${session.user}, visit ${count}`)
  }
}

interface Site {
  readonly leasehold: Leasehold
  readonly sessions: Sessions<Visits>
  readonly server: Server
}

async function start(folder: string): Promise<Site> {
  const leasehold = await Leasehold.open(`file:${folder}`, { holder: 'site' })
  const sessions = leasehold.sessions<Visits>('login', { max: '8h' })
  const server = createServer((request, response) => {
    // A store that cannot be reached must not look like a logout.
    respond(sessions, request, response).catch(() => response.writeHead(503).end('try again'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { leasehold, sessions, server }
}

async function stop({ server, leasehold }: Site): Promise<void> {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  await leasehold.close()
}

/** A browser: it sends the cookie that it was given. */
function browser(cookie = '') {
  return async (site: Site, method: string, path: string): Promise<string> => {
    const { port } = site.server.address() as AddressInfo
    const url = `http://127.0.0.1:${port}${path}`
    const answer = await fetch(url, { method, headers: { cookie, connection: 'close' } })
    cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? cookie
    return `${answer.status} ${await answer.text()}`
  }
}

const folder = await mkdtemp(join(tmpdir(), 'login-session-'))
let site = await start(folder)
const [phone, laptop, bob] = [browser(), browser(), browser()]

console.log(`POST /login as ada      → ${await phone(site, 'POST', '/login?user=ada')}`)
await laptop(site, 'POST', '/login?user=ada')
await phone(site, 'GET', '/')
await phone(site, 'GET', '/')
console.log(`GET /  on her phone     → ${await phone(site, 'GET', '/')}`)
const stranger = browser('sid=AAAAAAAAAAAAAAAAAAAAAA')
console.log(`GET /  with a made-up cookie → ${await stranger(site, 'GET', '/')}`)

for (let i = 0; i < 10; i++) await phone(site, 'GET', '/')

await stop(site)
site = await start(folder)
console.log('the server is started again')
const watch = site.sessions.watch((event) => {
  if (event.type === 'ended') {
    console.log(`ended: a session of ${event.user}, ${event.why ?? event.reason}`)
  }
})
await watch.ready
console.log(`GET /  on her phone     → ${await phone(site, 'GET', '/')}`)
console.log(`POST /logout-everywhere → ${await phone(site, 'POST', '/logout-everywhere')}`)
console.log(`GET /  on her laptop    → ${await laptop(site, 'GET', '/')}`)

const expired = new Promise<void>((resolve) => {
  site.sessions.watch((event) => event.type === 'ended' && event.user === 'bob' && resolve())
})
console.log(`POST /login as bob      → ${await bob(site, 'POST', '/login?user=bob&public')}`)
// He does nothing for longer than the ttl.
const waiting = setInterval(() => {}, 1000)
await expired
clearInterval(waiting)
console.log(`GET /  bob, who was idle → ${await bob(site, 'GET', '/')}`)

await stop(site)
await rm(folder, { recursive: true })
