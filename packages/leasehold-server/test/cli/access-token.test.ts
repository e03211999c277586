import { fileStore } from 'leasehold/file'
import { systemClock } from 'leasehold/port'
import { afterAll, describe, expect, it } from 'vitest'
import { AccessTokens, parseRight } from '../../src/access/index.ts'
import { runLeasehold } from '../setup/run-leasehold.ts'
import { Place } from '../setup/server-process.ts'

const place = new Place()
afterAll(() => place.clean())

describe('leasehold access-token', () => {
  it('creates the first token on an open server, which then requires one, and reopens it only on request', async () => {
    const server = await place.server()
    const env = { LEASEHOLD_URL: server.url }
    const run = (args: string[], token?: string) =>
      runLeasehold(args, { env: { ...env, ...(token && { LEASEHOLD_ACCESS_TOKEN: token }) } })

    const made = await run(['access-token', 'create', 'admin', '--right', 'all:'])
    expect(made).toMatchObject({ code: 0, stderr: '' })
    const admin = made.stdout.trim()
    expect(admin).toMatch(/^lh_admin_[\w-]{43}$/)
    expect(await run(['ls'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /requires an access token: set LEASEHOLD_ACCESS_TOKEN, .* --access-token/,
      ),
    })
    const doctor = await run(['doctor'])
    expect(doctor.stdout).toMatch(/^server +bad .*LEASEHOLD_ACCESS_TOKEN/m)
    const again = await run(['access-token', 'create', 'admin', '--right', 'all:'], admin)
    expect(again).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/already has an access token/),
    })

    const worker = await run(
      [
        'access-token',
        'create',
        'worker',
        '--right',
        'claim,read:jobs/',
        'read:',
        '--quota',
        'leases=5',
        'ttlMax=1h',
        '--expires',
        '90d',
        '--certificate',
        'worker.example',
        '--json',
      ],
      admin,
    )
    const { token } = JSON.parse(worker.stdout) as { token: string }
    const lock = (key: string) => run(['lock', key, '--', 'echo', 'held'], token)
    expect(await lock('jobs/1')).toMatchObject({ code: 0, stdout: 'held\n' })
    const refused = await lock('other')
    expect(refused).toMatchObject({ code: 125, stdout: '' })
    expect(refused.stderr).toMatch(/"worker" has no right to claim "other"/)
    // Creating tokens needs all rights.
    expect((await run(['access-token', 'create', 'more', '--right', 'all:'], token)).code).toBe(1)

    const list = await run(['access-token', 'list', '--json'], admin)
    expect(JSON.parse(list.stdout)).toMatchObject([
      { name: 'admin', rights: ['all:'] },
      {
        name: 'worker',
        rights: ['claim,read:jobs/', 'read:'],
        quota: { leases: 5, ttlMax: 3_600_000 },
        certificate: 'worker.example',
      },
    ])
    const table = await run(['access-token', 'list'], admin)
    expect(table.stdout).toMatch(/^worker +claim,read:jobs\/ read: +leases=5 ttlMax=3600000 /m)
    for (const { stdout, stderr } of [list, table, refused]) {
      expect(stdout + stderr).not.toContain(admin.slice(-43))
    }

    expect((await run(['access-token', 'revoke', 'worker'], admin)).code).toBe(0)
    expect((await lock('jobs/1')).code).toBe(125)
    expect((await run(['access-token', 'revoke', 'worker'], admin)).code).toBe(3)
    const last = await run(['access-token', 'revoke', 'admin'], admin)
    expect(last).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/is the last access token/),
    })
    expect(
      (await run(['access-token', 'revoke', 'admin', '--open-to-everybody'], admin)).code,
    ).toBe(0)
    expect((await run(['ls'])).code).toBe(0)
  }, 300_000)

  it('must be able to administer if it is the first one, so that its creator is not locked out', async () => {
    const server = await place.server()
    const run = (args: string[], token?: string) =>
      runLeasehold(['access-token', ...args, '--server', server.url], {
        env: { ...(token && { LEASEHOLD_ACCESS_TOKEN: token }) },
      })
    const ci = ['create', 'ci', '--right', 'claim,read:jobs/']
    const refused = await run(ci)
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    const command = /first: leasehold (access-token create admin --right all: --server \S+)\n$/
    expect(refused.stderr).toMatch(/"ci" has no right to administer/)
    // Still open to everybody, and the suggested command works.
    const typed = command.exec(refused.stderr)![1]!.split(' ')
    const admin = (await runLeasehold(typed)).stdout.trim()
    expect((await run(ci, admin)).code).toBe(0)

    const last = await run(['revoke', 'admin'], admin)
    expect(last).toMatchObject({ code: 1, stderr: expect.stringMatching(command) })
    expect(last.stderr).toMatch(/the last access token that can administer/)
    const brief = await run(['create', 'brief', '--right', 'admin:', '--expires', '1d'], admin)
    expect(brief).toMatchObject({ code: 0, stderr: '' })
    expect((await run(['revoke', 'admin'], admin)).code).toBe(0)
  }, 300_000)

  it('warns if the first one, the only administrator, expires', async () => {
    const folder = await place.folder()
    const target = ['--store', `file:${folder}`]
    const create = ['access-token', 'create', 'ops', '--right', 'all:', '--expires', '90d']
    const made = await runLeasehold([...create, ...target])
    expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^lh_ops_[\w-]{43}\n$/) })
    expect(made.stderr).toMatch(/"ops" is the only administrator, and expires on \d{4}-/)
  })

  it('rescues a server that nobody can administer, without a server', async () => {
    const folder = await place.folder()
    const on = `file:${folder}`
    const store = await fileStore(folder)
    const tokens = await AccessTokens.open(store, systemClock)
    // As an earlier version allowed it.
    await tokens.create({ name: 'ci', rights: [parseRight('claim:jobs/')] })
    tokens.close()
    await store.close()
    const server = await place.serverOn(on).start()
    await server.said(
      /no access token can administer.*access-token create admin --right all: --store/,
    )
    await server.end('SIGTERM')
    const create = ['access-token', 'create', 'admin', '--right', 'all:', '--store', on]
    const admin = (await runLeasehold(create)).stdout.trim()
    await server.start()
    const list = ['access-token', 'list', '--server', server.url, '--access-token', admin]
    expect((await runLeasehold(list)).stdout).toMatch(/^admin .*\nci /m)
    expect(server.errors).toBe('')
  })

  it('is made without a server, in the folder that one will serve', async () => {
    const folder = await place.folder()
    const made = await runLeasehold([
      'access-token',
      'create',
      'ops',
      '--right',
      'all:',
      '--store',
      `file:${folder}`,
    ])
    const server = await place.serverOn(`file:${folder}`).start()
    const ls = (token: string) => runLeasehold(['ls', '--server', server.url, '--token', token])
    expect((await ls(made.stdout.trim())).code).toBe(0)
    const wrong = await ls('lh_ops_wrong')
    expect(wrong).toMatchObject({ code: 1, stderr: 'leasehold: unknown access token\n' })
  })

  it('refuses rights and quotas that mean nothing', async () => {
    const folder = await place.folder()
    const create = (...args: string[]) =>
      runLeasehold(['access-token', 'create', 'x', ...args, '--store', `file:${folder}`])
    expect((await create('--right', 'claim')).stderr).toMatch(/right "claim" has no colon/)
    expect((await create('--right', 'all:', '--quota', 'beer=5')).stderr).toMatch(
      /quota "beer" is unknown/,
    )
    expect((await create('--right', 'all:', '--quota', 'leases=many')).stderr).toMatch(
      /quota leases is NaN/,
    )
    expect((await create()).code).toBe(2)
  })

  it('accepts the deprecated spellings: token, --token and LEASEHOLD_AUTH', async () => {
    const server = await place.server()
    const run = (args: string[], env: Record<string, string> = {}) =>
      runLeasehold([...args, '--server', server.url], { env })
    const made = await run(['token', 'create', 'admin', '--right', 'all:'])
    expect(made).toMatchObject({ code: 0, stderr: '' })
    const admin = made.stdout.trim()
    expect((await run(['ls'])).code).toBe(1)
    expect((await run(['ls', '--token', admin])).code).toBe(0)
    expect((await run(['ls'], { LEASEHOLD_AUTH: admin })).code).toBe(0)
    expect((await run(['ls'], { LEASEHOLD_TOKEN: admin })).code).toBe(1)
  })
})
