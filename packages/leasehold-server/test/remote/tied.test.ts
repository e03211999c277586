import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Leasehold } from 'leasehold'
import { systemClock } from 'leasehold/port'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Place, type ServerProcess } from '../setup/server-process.ts'

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url))
const CLI = fileURLToPath(new URL('../../bin/leasehold.js', import.meta.url))
/** Much longer than the test: what ends sooner was not ended by its ttl. */
const TTL = '10m'

/** The killed command cannot end its child, so the child looks for its parent. */
const UNTIL_ORPHANED = `
  const parent = process.ppid
  console.log('ready')
  setInterval(() => process.ppid === parent || process.exit(), 100)`

const place = new Place()
const children: ChildProcess[] = []
let server: ServerProcess
let leasehold: Leasehold

beforeAll(async () => {
  server = await place.server('memory:')
  leasehold = await Leasehold.open(server.url)
})

afterAll(async () => {
  await leasehold.close()
  for (const child of children) child.kill('SIGKILL')
  await place.clean()
})

/** Runs it until it prints a line. */
async function start(args: readonly string[]): Promise<ChildProcess> {
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(child)
  await once(child.stdout!, 'data')
  return child
}

function program(options: string, body: string): Promise<ChildProcess> {
  const code = `
    import { Leasehold } from 'leasehold'
    const leasehold = await Leasehold.open('${server.url}', ${options})
    ${body}
    console.log('ready')
    setInterval(() => {}, 1000)`
  return start(['--input-type=module', '--eval', code])
}

function command(name: string, ...args: string[]): Promise<ChildProcess> {
  const run = ['--', process.execPath, '-e', UNTIL_ORPHANED]
  return start([CLI, name, '--server', server.url, '--ttl', TTL, ...args, ...run])
}

/** Kills it, and returns how many milliseconds later nothing under the prefix is claimed any more. */
async function freedAfterKill(child: ChildProcess, prefix: string): Promise<number> {
  const claimed = async () => (await keysBelow(prefix)).length
  expect(await claimed()).toBeGreaterThan(0)
  const begin = systemClock.now()
  child.kill('SIGKILL')
  while ((await claimed()) > 0 && systemClock.now() - begin < 5000) {
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  return systemClock.now() - begin
}

async function keysBelow(prefix: string): Promise<readonly string[]> {
  const response = await fetch(`${server.url}/v1/keys?prefix=${encodeURIComponent(prefix)}`)
  const { keys } = (await response.json()) as { keys: { key: string }[] }
  return keys.map(({ key }) => key)
}

describe('what is tied ends with its process', () => {
  it.each([
    ['a client', '{ tied: true }', `await leasehold.lock('a/1', { ttl: '${TTL}' })`, 'a/'],
    ['a lock', '{}', `await leasehold.lock('b/1', { ttl: '${TTL}', tied: true })`, 'b/'],
    [
      'an election',
      '{}',
      `await leasehold.election('c', { ttl: '${TTL}', tied: true }).campaign()`,
      'election/c/',
    ],
    [
      'a registration',
      '{}',
      `await leasehold.registry.register('d', { ttl: '${TTL}', tied: true })`,
      'services/d/',
    ],
  ])('%s', async (_name, options, body, prefix) => {
    expect(await freedAfterKill(await program(options, body), prefix)).toBeLessThan(3000)
  })

  it.each([
    ['lock', ['e/1', '--tied'], 'e/'],
    ['elect', ['f', '--tied'], 'election/f/'],
    ['register', ['g', '--tied'], 'services/g/'],
  ])('leasehold %s --tied', async (name, args, prefix) => {
    expect(await freedAfterKill(await command(name, ...args), prefix)).toBeLessThan(3000)
  })
})

describe('what is not tied outlives its process', () => {
  it.each([
    [
      'a lock of a client that is not tied',
      '{}',
      `await leasehold.lock('h/1', { ttl: '${TTL}' })`,
      'h/',
    ],
    [
      'a lock that is not tied, of a client that is',
      '{ tied: true }',
      `await leasehold.lock('i/1', { ttl: '${TTL}', tied: false })`,
      'i/',
    ],
    [
      'a session of a client that is tied',
      '{ tied: true }',
      `await leasehold.sessions('j').create({ data: 1 })`,
      'session/j/',
    ],
  ])('%s', async (_name, options, body, prefix) => {
    const child = await program(
      `{ ...${options}, holder: 'gone' }`,
      `await leasehold.lock('${prefix}tied', { tied: true, ttl: '${TTL}' })\n${body}`,
    )
    const before = await keysBelow(prefix)
    expect(before.length).toBeGreaterThan(1)
    child.kill('SIGKILL')
    // The tied lock of the same process shows when the server has noticed.
    await leasehold.withLock(`${prefix}tied`, { wait: '5s' }, () => {})
    expect(await keysBelow(prefix)).toEqual(before.filter((key) => key !== `${prefix}tied`))
  })
})

describe('tied without a server is refused', () => {
  it('by open and by lock', async () => {
    await expect(Leasehold.open('memory:', { tied: true })).rejects.toThrow(
      "tied is only for the URL of a server, such as 'http://host:7420'",
    )
    const local = await Leasehold.open('memory:')
    await expect(local.lock('k', { tied: true })).rejects.toThrow('tied needs a server')
    await local.close()
  })
})
