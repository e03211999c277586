import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { memoryStore } from 'leasehold/memory'
import { createServer } from 'leasehold-server'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

/**
 * Short programs that each wait for one thing. `later` runs a function with a timer that does not
 * keep the process running, so only the wait does. Node ends a process that waits for nothing with
 * code 13.
 */
const PROGRAMS: Record<string, string> = {
  'tryLock and release': `const { lock } = await leasehold.tryLock('a'); await lock.release()`,
  'lock, renew and update': `
    const lock = await leasehold.lock('b')
    await lock.renew()
    await lock.update('text')
    await lock[Symbol.asyncDispose]()`,
  'lock that waits': `
    const lock = await leasehold.lock('c')
    later(() => lock.release())
    await (await leasehold.lock('c')).release()`,
  withLock: `await leasehold.withLock('d', () => 1)`,
  'withLock, whose work waits': `await leasehold.withLock('d2', () => sleepUnref())`,
  'once, whose work waits': `await leasehold.once('d3', () => sleepUnref())`,
  'election.withTerms, whose work waits': `
    const stop = new AbortController()
    const work = () => sleepUnref().then(() => stop.abort())
    await leasehold.election('d4').withTerms(work, { signal: stop.signal })`,
  'lock with a learnt ttl': `
    await (await leasehold.lock('e', { ttl: 'adaptive', kind: 'k' })).release()
    await leasehold.adaptive.explain('k')
    await leasehold.adaptive.flush()`,
  'election.campaign': `
    const election = leasehold.election('f')
    const term = await election.campaign()
    await election.proclaim('value')
    await election.leader()
    await term.resign()`,
  'election.campaign that waits': `
    const term = await leasehold.election('g', { candidate: 'one' }).campaign()
    later(() => term.resign())
    await leasehold.election('g', { candidate: 'two' }).campaign()`,
  'election.lead': `for await (const term of leasehold.election('h').lead()) break`,
  'election.withTerms': `
    const stop = new AbortController()
    await leasehold.election('i').withTerms(() => stop.abort(), { signal: stop.signal })`,
  'election.observe ready': `await leasehold.election('j').observe().ready`,
  'election.observe iteration': `
    later(() => leasehold.election('k').campaign())
    for await (const leader of leasehold.election('k').observe()) if (leader) break`,
  'registry.register and find': `
    const one = await leasehold.registry.register('l', { id: 'one' })
    await one.update({ weight: 2 })
    await leasehold.registry.find('l')
    await leasehold.registry.services()
    await one.release()`,
  'registry.watch ready': `await leasehold.registry.watch('m').ready`,
  'registry.watch iteration': `
    later(() => leasehold.registry.register('n', { id: 'one' }))
    for await (const change of leasehold.registry.watch('n')) break`,
  'registry.watch iteration until the client is closed': `
    const other = await Leasehold.open(url === 'memory:' ? url : store)
    later(() => other.close())
    for await (const change of other.registry.watch('o')) break`,
  'registry.node': `await (await leasehold.registry.node('p')).release()`,
  'registry.nodes.watch ready': `await leasehold.registry.nodes.watch().ready`,
  'registry.checker': `const checker = leasehold.registry.checker(); await checker.close()`,
  'pool.status': `await leasehold.pool('q', POOL).status()`,
  'pool.take, extend and redefine': `
    const pool = leasehold.pool('r', POOL)
    const permit = await pool.take({ tenant: 't', kind: 'k' })
    await permit.extend()
    await permit.release()
    await pool.redefine(POOL)`,
  'pool.tryTake': `await leasehold.pool('s', POOL).tryTake({ tenant: 't', kind: 'k' })`,
  'pool.take that waits': `
    const pool = leasehold.pool('t', POOL)
    const permit = await pool.take({ tenant: 't', kind: 'k' })
    later(() => permit.release())
    await pool.take({ tenant: 't', kind: 'k' })`,
  'sessions.watch ready': `await leasehold.sessions('u').watch(() => {}).ready`,
  'sessions.create, get, save, touch, list and end': `
    const sessions = leasehold.sessions('v')
    const { id } = await sessions.create({ user: 'u', data: 1 })
    const session = await sessions.get(id)
    await session.save(2)
    await session.touch()
    await sessions.list('u')
    await sessions.endAll('u')
    await sessions.end(id)`,
  'cache.get, peek, set and delete': `
    const cache = leasehold.cache('w')
    await cache.get('k', () => 1)
    await cache.peek('k')
    await cache.set('k', 2)
    await cache.delete('k')`,
  'cache.get that waits for another loader': `
    leasehold.cache('x').get('k', () => sleepUnref())
    await new Promise((resolve) => setTimeout(resolve, 50))
    await leasehold.cache('x').get('k', () => 2)`,
  'a call that is sent again after a pause': `
    const inner = memoryStore()
    const shaky = { guarantees: { ...inner.guarantees, inProcess: false } }
    for (const name of ['renew', 'revoke', 'claim', 'update', 'read', 'watch', 'close']) {
      shaky[name] = (...args) => inner[name](...args)
    }
    for (const name of ['grant', 'release']) {
      let failures = 2
      shaky[name] = async (request) => {
        if (failures-- > 0) throw new LeaseholdError('unknown-outcome', 'no answer')
        return inner[name](request)
      }
    }
    await (await (await Leasehold.open(shaky)).lock('z')).release()`,
  close: `await leasehold.lock('y'); await leasehold.close()`,
}

const BEGIN = `
  import { Leasehold, LeaseholdError } from 'leasehold'
  import { memoryStore } from 'leasehold/memory'
  import { remoteStore } from 'leasehold/remote'
  const url = process.argv[1]
  const later = (run) => setTimeout(run, 200, 1).unref()
  const sleepUnref = () => new Promise(later)
  const POOL = { resources: [{ name: 'gpu' }] }
  const store = url.startsWith('http') ? await remoteStore(url) : url
  const leasehold = await Leasehold.open(store)
`

/** Runs a program on a store. Returns its exit code and output. */
function run(program: string, url: string): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', BEGIN + program, url], {
    cwd: fileURLToPath(new URL('../../..', import.meta.url)),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  child.stdout.on('data', (data) => {
    output += data
  })
  child.stderr.on('data', (data) => {
    output += data
  })
  const killer = setTimeout(() => child.kill('SIGKILL'), 25_000)
  return new Promise((resolve) => {
    child.on('close', (code) => {
      clearTimeout(killer)
      resolve({ code, output })
    })
  })
}

describe('a process with a client keeps running while it waits, and ends afterwards', () => {
  let server: Awaited<ReturnType<typeof createServer>>
  let folder: string
  const kept = memoryStore()
  beforeAll(async () => {
    server = await createServer({ store: kept, port: 0 })
    folder = await mkdtemp(join(tmpdir(), 'leasehold-'))
  })
  afterAll(async () => {
    await server.close()
    await kept.close()
    await rm(folder, { recursive: true })
  })

  it.each(Object.keys(PROGRAMS))(
    'on a server: %s',
    async (name) => {
      const done = await run(`${PROGRAMS[name]}\nconsole.log('done')`, server.url)
      expect(done).toEqual({ code: 0, output: 'done\n' })
    },
    30_000,
  )

  it.each(['memory:', 'file:'])(
    'on %s: one thing after the other',
    async (kind) => {
      const { 'registry.watch iteration until the client is closed': whole, ...others } = PROGRAMS
      const programs = kind === 'memory:' ? { ...others, whole } : others
      const names = Object.keys(programs).filter((name) => name !== 'close')
      const blocks = [...names, 'close'].map(
        (name) =>
          `{ ${programs[name as keyof typeof programs]}; console.log(${JSON.stringify(name)}) }`,
      )
      const done = await run(blocks.join('\n'), kind === 'file:' ? `file:${folder}` : kind)
      expect(done.output.trimEnd().split('\n')).toEqual([...names, 'close'])
      expect(done.code).toBe(0)
    },
    30_000,
  )
})
