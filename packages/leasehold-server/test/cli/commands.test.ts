import { Leasehold } from 'leasehold'
import type { Event } from 'leasehold/port'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Ran, runLeasehold, startLeasehold } from '../setup/run-leasehold.ts'
import { Place, type ServerProcess } from '../setup/server-process.ts'

const place = new Place()
let server: ServerProcess
let leasehold: Leasehold
let env: Record<string, string>

beforeAll(async () => {
  server = await place.server('memory:')
  env = { LEASEHOLD_URL: server.url }
  leasehold = await Leasehold.open(server.url, { holder: 'alice', callTimeout: '20s' })
})
afterAll(async () => {
  await leasehold?.close()
  await place.clean()
})

const run = (...args: string[]) => runLeasehold(args, { env })

async function json<Value>(...args: string[]): Promise<Value> {
  const ran: Ran = await run(...args, '--json')
  expect(ran).toMatchObject({ code: 0, stderr: '' })
  return JSON.parse(ran.stdout) as Value
}

describe('a held key', () => {
  it('is listed, shown and waited for', async () => {
    await using lock = await leasehold.lock('jobs/1', { ttl: '60s', value: 'page \x1b[31m1' })
    const waiting = leasehold.lock('jobs/1', { ttl: '60s' })
    waiting.catch(() => {})
    const table = await run('ls', 'jobs/')
    expect(table.stdout).toMatch(/^KEY +HOLDER +MODE +TOKEN/)
    expect(table.stdout).toMatch(/^jobs\/1 +alice +exclusive +\d+ .* 1 +1$/m)
    await expect
      .poll(() => json<unknown[]>('ls', 'jobs/'))
      .toEqual([expect.objectContaining({ key: 'jobs/1', holders: 1, count: 2 })])
    expect(await json('get', 'jobs/1')).toMatchObject({
      key: 'jobs/1',
      holders: [{ holder: 'alice', token: lock.token }],
      waiting: 1,
    })
    expect(await json('waiters', 'jobs/1')).toMatchObject([{ holder: 'alice' }])
    const [listed] = await json<{ claims: { claimedAt: number; until: number }[] }[]>('ls', 'jobs/')
    const { claimedAt, until } = listed!.claims[0]!
    expect([claimedAt, until].every(Number.isInteger), `${claimedAt} ${until}`).toBe(true)
    // A holder's value cannot colour the terminal of the reader.
    expect((await run('get', 'jobs/1')).stdout).not.toContain('\x1b')
    await lock.release()
    await (await waiting).release()
    const history = await json<{ end: { reason: string } }[]>('history', 'jobs/1')
    expect(history.map(({ end }) => end.reason)).toEqual(['released', 'released'])
  })

  it('is missing if nobody holds it, with the code 3', async () => {
    expect(await run('get', 'nobody')).toMatchObject({
      code: 3,
      stderr: 'leasehold: nobody holds "nobody"\n',
    })
    expect(await json('ls', 'nothing/')).toEqual([])
  })

  it('is reported live, line by line', async () => {
    const running = startLeasehold(['watch', 'seen/', '--json'], { env })
    let reported = 0
    // The start of the watch is unknown: take locks until it has seen one held.
    while (!running.stdout.includes('"held"')) {
      await (await leasehold.lock('seen/1', { ttl: '60s' })).release()
      await (await leasehold.lock('hidden', { ttl: '60s' })).release()
      reported++
    }
    running.child.kill('SIGINT')
    const { code, stdout } = await running.ended
    expect(code).toBe(0)
    const events = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Event)
    expect(reported).toBeGreaterThan(0)
    expect(new Set(events.map(({ key }) => key))).toEqual(new Set(['seen/1']))
    const at = events.findIndex(({ type }) => type === 'held')
    expect(events[at - 1]).toEqual({ ...events[at], type: 'claimed' })
  })

  it('can be taken away, with a reason', async () => {
    const lock = await leasehold.lock('forced', { ttl: '60s' })
    expect((await run('revoke', 'forced')).code).toBe(2)
    expect((await run('revoke', '--why', 'x')).code).toBe(2)
    expect(await json('revoke', 'forced', '--why', 'it hangs')).toEqual({ claims: 1, leases: 0 })
    await expect.poll(() => lock.state).toBe('lost')
    expect((lock.signal.reason as Error).message).toContain('it hangs')
    expect((await run('revoke', 'forced', '--why', 'again')).code).toBe(3)
  })

  it('can be given a last deadline', async () => {
    await using lock = await leasehold.lock('limited', { ttl: '60s', labels: { own: 'lease' } })
    const { lease } = lock
    expect(await json('break', 'limited', '--after', '30s', '--why', 'deploy')).toEqual({
      leases: [lease],
      after: 30_000,
    })
    await expect.poll(() => lock.remaining()).toBeLessThan(30_000)
    expect((await run('break', 'nobody', '--after', '1s', '--why', 'x')).code).toBe(3)
  })
})

describe('recipes', () => {
  it('elect runs a command while it leads, with the term as its token', async () => {
    const script = 'echo $LEASEHOLD_TOKEN; exit 4'
    const first = await run('elect', 'boss', '--', 'sh', '-c', script)
    const second = await run('elect', 'boss', '--', 'sh', '-c', script)
    expect([first.code, second.code]).toEqual([4, 4])
    expect(Number(second.stdout)).toBeGreaterThan(Number(first.stdout))
    const election = leasehold.election('boss', { ttl: '60s' })
    const term = await election.campaign()
    expect((await run('elect', 'boss', '--wait', '100ms', '--', 'true')).code).toBe(124)
    await term.resign()
  })

  it('elect steps down, with TERM first, for a candidate that is preferred', async () => {
    const script = 'trap "echo cleaned; exit 0" TERM; echo in; sleep 60 & wait'
    const running = startLeasehold(['elect', 'chief', '--', 'sh', '-c', script], { env })
    await running.printed(/in\n/)
    const election = leasehold.election('chief', { ttl: '60s', priority: 5, preempt: true })
    await using term = await election.campaign()
    expect(term.leading).toBe(true)
    expect(await running.ended).toMatchObject({ code: 123, stdout: 'in\ncleaned\n' })
  })

  it('register runs a command while its instance is registered', async () => {
    const args = [
      'register',
      'web',
      '--id',
      'w1',
      '--address',
      '10.0.0.7:80',
      '--tag',
      'blue',
      '--meta',
      'a=b',
    ]
    const running = startLeasehold(
      [...args, '--', 'sh', '-c', 'echo $LEASEHOLD_INSTANCE; sleep 60'],
      { env },
    )
    await running.printed(/w1\n/)
    expect(await json('services', 'web')).toMatchObject([
      { id: 'w1', status: 'passing', address: '10.0.0.7:80', tags: ['blue'], metadata: { a: 'b' } },
    ])
    expect((await run('services')).stdout).toMatch(/^web +1 +1$/m)
    running.child.kill('SIGTERM')
    expect((await running.ended).code).toBe(143)
    expect(await run('services', 'web')).toMatchObject({ code: 3 })
  })

  it('pool shows the holders', async () => {
    const pool = leasehold.pool('gpus', { resources: [{ name: 'gpu-0' }, { name: 'gpu-1' }] })
    await using _permit = await pool.take({ tenant: 'research', ttl: '10m' })
    expect(await json('pool', 'gpus')).toMatchObject({
      tenants: [{ tenant: 'research', holds: 1 }],
    })
    const { stdout } = await run('pool', 'gpus')
    expect(stdout).toMatch(/^gpu-[01] +0\/1 +research +alice/m)
    expect(await json('pool')).toEqual([{ name: 'gpus', resources: 2, free: 1, waiting: 0 }])
    expect((await run('pool')).stdout).toMatch(/^gpus +2 +1 +0$/m)
    expect(await run('pool', 'none')).toMatchObject({
      code: 3,
      stderr: 'leasehold: the pool "none" is not defined\n',
    })
  })
})

describe('the command line', () => {
  it('explains its exit codes in --help', async () => {
    for (const command of ['lock', 'elect', 'register']) {
      expect((await run(command, '--help')).stdout).toMatch(/123 {2}the lease was lost.*\n.*124/)
    }
    for (const command of ['ls', 'get', 'revoke', 'doctor', 'top']) {
      expect((await run(command, '--help')).stdout).toMatch(/3 {2}not found/)
    }
  })

  it.each([['lss'], ['ls', '--limti', '5'], ['get'], ['completion', 'tcsh']])(
    'answers a wrong one (%s) with 2',
    async (...args) => {
      const { code, stderr } = await run(...args)
      expect(code).toBe(2)
      expect(stderr).toMatch(/^error: /)
    },
  )

  it.each<[RegExp, string[]]>([
    [/port is "abc" \(from --port\)/, ['serve', '--port', 'abc']],
    [/tlsKey is "x" .* --tls-cert is missing/, ['serve', '--store', 'memory:', '--tls-key', 'x']],
    [/after is "2x"/, ['break', 'k', '--after', '2x', '--why', 'x']],
    [/--limit is "abc"/, ['ls', '--limit', 'abc']],
    [/--limit is "-1"/, ['ls', '--limit', '-1']],
    [/timeout is "soon"/, ['ls', '--timeout', 'soon']],
    [
      /use --server .* or --store .*, not both/,
      ['ls', '--server', 'http://a', '--store', 'file:x'],
    ],
    [/"ftp:\/\/a"/, ['ls', '--server', 'ftp://a']],
    [/"mysql:\/\/h"/, ['ls', '--store', 'mysql://h']],
    [/--ca "no\/such" cannot be read/, ['ls', '--ca', 'no/such']],
    [/--claim is "abc"/, ['revoke', 'k', '--claim', 'abc', '--why', 'x']],
    [/--from is "abc"/, ['watch', '--from', 'abc']],
    [/every is "soon"/, ['top', '--once', '--every', 'soon']],
    [/key is empty/, ['get', '']],
    [/right "claim" has no colon/, ['access-token', 'create', 'x', '--right', 'claim']],
    [/expires is "soon"/, ['access-token', 'create', 'x', '--right', 'all:', '--expires', 'soon']],
    [/quota "beer"/, ['access-token', 'create', 'x', '--right', 'all:', '--quota', 'beer=5']],
    [/has no folder/, ['backup', 'no/such', '--store', 'memory:']],
  ])('answers a value that is wrong (%s) with 2', async (message, args) => {
    const { code, stderr, stdout } = await run(...args)
    expect(stderr).toMatch(/^leasehold: [^\n]*\n$/)
    expect(stderr).toMatch(message)
    expect([code, stdout]).toEqual([2, ''])
  })

  it.each<[RegExp, string[]]>([
    [/--priority is "abc"/, ['elect', 'boss', '--priority', 'abc', '--', 'true']],
    [/--weight is "abc"/, ['register', 'web', '--weight', 'abc', '--', 'true']],
    [/--ttl is 12ms, .* Use --ttl 15ms/, ['elect', 'boss', '--ttl', '12ms', '--', 'true']],
  ])('answers an invalid one for a command (%s) with 125', async (message, args) => {
    const { code, stderr } = await run(...args)
    expect(stderr).toMatch(message)
    expect(code).toBe(125)
  })

  it('answers a lease that is not there with 3', async () => {
    for (const args of [['revoke'], ['break', '--after', '1s']]) {
      const ran = await run(...args, '--lease', 'no-such-lease', '--why', 'x')
      expect(ran).toMatchObject({ code: 3, stderr: expect.stringMatching(/no-such-lease/) })
    }
  })

  it('ends quietly when its output is closed', async () => {
    const running = startLeasehold(['watch'], { env })
    running.child.stdout?.destroy()
    let isOver = false
    const ended = running.ended.finally(() => {
      isOver = true
    })
    // Each lock is awaited: one that still waits when the client closes would fail with nobody there.
    while (!isOver) await (await leasehold.lock('x', { ttl: '60s' })).release()
    const { code, stderr } = await ended
    expect([code, stderr]).toEqual([0, ''])
  })
})
