import { execFileSync } from 'node:child_process'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Leasehold } from 'leasehold'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runLeasehold, startLeasehold } from '../setup/run-leasehold.ts'
import { Place, type ServerProcess } from '../setup/server-process.ts'

const place = new Place()
let server: ServerProcess
let leasehold: Leasehold
let env: Record<string, string>

beforeAll(async () => {
  server = await place.server('memory:')
  env = { LEASEHOLD_URL: server.url, USER: 'olga' }
  leasehold = await Leasehold.open(server.url, { holder: 'alice', callTimeout: '20s' })
})
afterAll(async () => {
  await leasehold?.close()
  await place.clean()
})

const run = (...args: string[]) => runLeasehold(args, { env })
const json = async (...args: string[]) => JSON.parse((await run(...args, '--json')).stdout)

describe('leasehold elections', () => {
  it('lists elections with their leaders, and the candidates of one', async () => {
    const term = await leasehold.election('scheduler', { value: 'a:1' }).campaign()
    await using other = await Leasehold.open(server.url, { holder: 'bob' })
    const campaign = new AbortController()
    const waiting = other.election('scheduler').campaign({ signal: campaign.signal })
    waiting.catch(() => {})
    await expect
      .poll(() => json('elections'))
      .toMatchObject([{ name: 'scheduler', leader: { candidate: 'alice' }, waiting: 1 }])
    expect((await run('elections')).stdout).toMatch(/^scheduler +alice +\d+ +\S+ +1 +a:1$/m)
    expect((await run('elections', 'scheduler')).stdout).toMatch(
      /^alice +leads +\d+ +0 .*\nbob +waits /m,
    )
    expect((await run('get', 'election/scheduler')).stdout).toMatch(
      /^alice +\d+ +alice +\S+ +a:1\n1 waiting$/m,
    )
    expect(await json('get', 'election/scheduler')).toMatchObject({
      ...{ key: 'election/scheduler', leader: { holder: 'alice', token: term.token }, waiting: 1 },
    })
    campaign.abort()
    await term.resign()
  })

  it('lists an election whose name has slashes', async () => {
    const term = await leasehold.election('eu/west/scheduler').campaign()
    expect(await leasehold.elections()).toEqual(['eu/west/scheduler'])
    expect(await json('elections')).toMatchObject([{ name: 'eu/west/scheduler', waiting: 0 }])
    expect((await run('elections', 'eu/west/scheduler')).stdout).toMatch(/^alice +leads /m)
    await term.resign()
  })

  it('ends with 3 for an election without candidates', async () => {
    const ran = await run('elections', 'nosuch')
    expect(ran).toMatchObject({ code: 3, stderr: expect.stringMatching(/"nosuch" has no candid/) })
    expect(await run('get', 'election/nosuch')).toMatchObject({
      ...{ code: 3, stderr: 'leasehold: nobody leads the election "nosuch"\n' },
    })
  })
})

describe('leasehold sessions', () => {
  it('lists tables, and the sessions in one without their ids and data', async () => {
    const sessions = leasehold.sessions('web')
    const made = await sessions.create({ user: 'ann', ttl: '1h', data: { secret: 'x' } })
    await sessions.create({ user: 'bob', ttl: '1h', data: {} })
    expect(await json('sessions')).toEqual([{ name: 'web', sessions: 2 }])
    expect((await json('sessions', 'web')).map((one: { user: string }) => one.user).sort()).toEqual(
      ['ann', 'bob'],
    )
    const table = await run('sessions', 'web', '--user', 'ann')
    expect(table.stdout).toMatch(/^ann +\S+ +\S+ +\S+ +\S+$/m)
    expect(table.stdout).not.toContain('bob')
    expect(table.stdout).not.toContain(made.id)
    expect(table.stdout).not.toContain('secret')
    expect(await run('sessions', 'nosuch')).toMatchObject({ code: 3 })
  })
})

describe('leasehold leases', () => {
  it('lists leases, or those of one holder', async () => {
    await using holder = await Leasehold.open(server.url, { holder: 'carol' })
    await using _ = await holder.lock(['l/1', 'l/2'], { ttl: '60s' })
    const found = await json('leases', '--holder', 'carol')
    expect(found).toMatchObject([{ holder: 'carol', ttl: 60_000, claims: 2 }])
    expect((await run('leases')).stdout).toMatch(/^\S+ +carol +1m00s +\S+ +\S+ +2 +0/m)
  })
})

it('--timeout limits an engine that cannot be reached, too', async () => {
  const ran = await runLeasehold(['ls', '--store', 'redis://127.0.0.1:9', '--timeout', '300ms'])
  expect(ran.stderr).toMatch(/Redis did not answer within 300ms/)
})

describe('leasehold drain', () => {
  it('takes an instance out of discovery with a reason, and returns it', async () => {
    const made = await leasehold.registry.register('web', { id: 'i-1', address: '10.0.0.1:80' })
    const drained = await run('drain', 'web', 'i-1', '--why', 'new disk')
    expect(drained).toMatchObject({ code: 0, stdout: 'web/i-1 is drained\n' })
    expect(await leasehold.registry.find('web')).toEqual([])
    const [instance] = await leasehold.registry.find('web', { status: 'any' })
    expect(instance).toMatchObject({
      status: 'critical',
      note: 'drained by olga by the command line: new disk',
    })
    expect(made.state).toBe('present')
    expect((await run('drain', 'web', 'i-1', '--return', '--why', 'done')).code).toBe(0)
    expect(await leasehold.registry.find('web')).toHaveLength(1)
    const again = await run('drain', 'web', 'i-1', '--return', '--why', 'done')
    expect(again).toMatchObject({ code: 3, stderr: 'leasehold: "web/i-1" is not drained\n' })
    const unknown = await run('drain', 'web', 'i-9', '--why', 'x')
    expect(unknown).toMatchObject({ code: 3, stderr: 'leasehold: "web/i-9" is not registered\n' })
    await made.release()
  })

  it('gives all leases of a holder a last deadline', async () => {
    await using holder = await Leasehold.open(server.url, { holder: 'dave' })
    const broken = new Promise((resolve) => holder.on('broken', resolve))
    await holder.lock('d/1', { ttl: '60s' })
    const ran = await run('drain', '--holder', 'dave', '--after', '20s', '--why', 'reboot')
    expect(ran.stdout).toBe('1 lease of "dave" ends in 20s at the latest\n')
    expect(await broken).toMatchObject({ why: 'reboot', by: 'olga by the command line' })
    expect(await run('drain', '--holder', 'nobody', '--why', 'x')).toMatchObject({ code: 3 })
  })

  it('refuses a command line that names neither or both', async () => {
    for (const args of [['web'], ['web', 'i-1', '--holder', 'x'], ['--return', '--holder', 'x']]) {
      expect(await run('drain', ...args, '--why', 'x')).toMatchObject({ code: 2 })
    }
  })
})

describe('a waiting command', () => {
  it('says whom it waits for, and its position in the queue', async () => {
    const lock = await leasehold.lock('busy', { ttl: '60s' })
    const start = () =>
      startLeasehold(['lock', 'busy', '--holder', 'ci', '--', 'echo', 'in'], { env })
    const first = start()
    await first.printed(/waiting for "busy", held by "alice"; position 1 of 1 in the queue\n/)
    const second = start()
    // Both have one name, and each knows its own position.
    await second.printed(/waiting for "busy", held by "alice"; position 2 of 2 in the queue\n/)
    await lock.release()
    expect(await first.ended).toMatchObject({ code: 0, stdout: 'in\n' })
    expect((await second.ended).code).toBe(0)
  })

  it('says so for an election too, and nothing if it need not wait', async () => {
    const term = await leasehold.election('wanted').campaign()
    const running = startLeasehold(['elect', 'wanted', '--', 'true'], { env })
    await running.printed(/waiting for "election\/wanted\/line", held by "alice"; position 1 of 1/)
    await term.resign()
    expect((await running.ended).code).toBe(0)
    expect(await run('lock', 'free', '--', 'true')).toMatchObject({ code: 0, stderr: '' })
  })
})

describe('the command line', () => {
  it('accepts the options of a connection before the command', async () => {
    await using _ = await leasehold.lock('g', { ttl: '60s' })
    const before = ['--server', server.url, '--json', '--timeout=5s']
    const ran = await runLeasehold([...before, 'get', 'g'])
    expect(ran).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse(ran.stdout)).toMatchObject({ key: 'g' })
    const lock = await runLeasehold(['--server', server.url, 'lock', 'g2', '--', 'false'])
    expect(lock.code).toBe(1)
    expect(await runLeasehold(['--nosuch', 'ls'])).toMatchObject({ code: 2 })
    expect((await runLeasehold(['--server', server.url])).code).toBe(2)
  })

  it('ends with 3 for a service without instances', async () => {
    const ran = await run('services', 'nosuch')
    expect(ran).toMatchObject({ code: 3, stdout: '' })
    expect(ran.stderr).toBe('leasehold: no instance of "nosuch" is registered\n')
  })

  it('counts in the singular and in the plural', async () => {
    const revoke = async (...keys: string[]) => {
      for (const key of keys) await leasehold.lock(`p/${key}`, { ttl: '60s' })
      return (await run('revoke', '--prefix', 'p/', '--why', 'test')).stdout
    }
    expect(await revoke('1')).toMatch(/^1 claim and \d leases? ended\n$/)
    expect(await revoke('1', '2')).toMatch(/^2 claims and \d leases? ended\n$/)
  })

  it.each(['lock k', 'once k', 'elect k', 'register k'])(
    'creates the folder of a store for leasehold %s, and looks into no missing one',
    async (command) => {
      const store = ['--store', `file:${join(await place.folder(), 'new')}`]
      expect((await run('ls', ...store)).code).toBe(2)
      const ran = await run(...command.split(' '), '--holder', 'me', ...store, '--', 'true')
      expect(ran).toMatchObject({ code: 0, stderr: '' })
      expect((await run('ls', ...store)).code).toBe(0)
    },
  )

  it.each([
    ['lock', 'k', '--', 'nosuchcommand'],
    ['ls', '--ca', '/nosuch.pem'],
    ['serve', '--config', '/nosuch.json'],
    ['serve', '--store', 'memory:', '--audit', '/nosuch/a.log'],
    ['backup', '/tmp/nosuch-copy', '--store', 'file:/nosuch'],
    ['restore', '/nosuch', '--store', 'file:/tmp/nosuch-restored'],
    ['ls', '--store', 'file:/nosuch'],
  ])('says in words that a file is missing: %s %s', async (...args) => {
    const ran = await run(...args)
    expect(ran.code).toBeGreaterThan(0)
    expect(ran.stderr).toMatch(/there is no such file or folder|was not found|there is no store/)
    expect(ran.stderr).not.toMatch(/ENOENT|EACCES|scandir/)
  })

  it('says how to build it, in a clone that is not built', async () => {
    const folder = await place.folder()
    const bin = fileURLToPath(new URL('../../bin', import.meta.url))
    cpSync(bin, join(folder, 'bin'), { recursive: true })
    for (const name of ['leasehold', 'leasehold-server']) {
      const start = () =>
        execFileSync(process.execPath, [join(folder, 'bin', `${name}.js`)], { stdio: 'pipe' })
      expect(start).toThrowError(/not built yet\. Run 'npm ci && npm run build'/)
    }
  })
})
