import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, realpath, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Running, runLeasehold, startLeasehold } from './setup/run-leasehold.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/**
 * A user's project outside the repository. Both packages are unpacked from the tarballs that would be
 * published. What they depend on is linked, so that the test needs no registry.
 */
describe('the packed server, in a project outside the repository', () => {
  let project: string
  let server: Running
  let env: Record<string, string>
  const options = () => ({ bin: bin(), cwd: project, env })
  const bin = () => join(project, 'node_modules/leasehold-server/bin/leasehold.js')
  const run = (...args: string[]) => runLeasehold(args, options())

  beforeAll(async () => {
    project = await realpath(await mkdtemp(join(tmpdir(), 'leasehold-packed-')))
    const modules = join(project, 'node_modules')
    for (const name of ['leasehold', 'leasehold-server']) {
      const folder = join(ROOT, 'packages', name)
      const args = ['pack', '--silent', '--pack-destination', project]
      const tarball = execFileSync('npm', args, { cwd: folder, encoding: 'utf8' }).trim()
      await mkdir(join(modules, name), { recursive: true })
      const place = ['-C', join(modules, name), '--strip-components=1']
      execFileSync('tar', ['-xzf', join(project, tarball), ...place])
    }
    const manifest = readFileSync(join(modules, 'leasehold-server/package.json'), 'utf8')
    const { dependencies } = JSON.parse(manifest) as { dependencies: Record<string, string> }
    for (const name of Object.keys(dependencies).filter((each) => each !== 'leasehold')) {
      await mkdir(dirname(join(modules, name)), { recursive: true })
      await symlink(join(ROOT, 'node_modules', name), join(modules, name))
    }
    server = startLeasehold(['serve', '--port', '0'], { bin: bin(), cwd: project })
    await server.printed(/listens on (\S+)\n/)
    env = { LEASEHOLD_URL: /listens on (\S+)\n/.exec(server.stdout)![1]! }
  })

  afterAll(async () => {
    server?.child.kill('SIGTERM')
    await server?.ended
    await rm(project, { recursive: true, force: true })
  })

  const register = (check: string) =>
    run('register', 'web', '--address', '10.1.2.3:80', '--check-http', check, '--', 'echo', 'ran')

  it('registers an instance in a private network with its health check', async () => {
    const ran = await register('http://10.1.2.3/health')
    expect(ran).toMatchObject({ code: 0, stdout: 'ran\n', stderr: '' })
  })

  it('refuses a health check that may not run, with the setting that allows it', async () => {
    const ran = await register('http://127.0.0.1:8080/health')
    expect(ran).toMatchObject({ code: 125, stdout: '' })
    expect(ran.stderr).toMatch(/loopback addresses are not allowed here.*--checks loopback/)
  })

  it('refuses a TCP check of the server itself, and two checks', async () => {
    const loopback = await run('register', 'web', '--check-tcp', '127.0.0.1:8080', '--', 'true')
    expect(loopback.stderr).toMatch(/loopback addresses are not allowed here/)
    const checks = ['--check-http', '/health', '--check-tcp', '10.1.2.3:80']
    const both = await run('register', 'web', '--address', '10.1.2.3:80', ...checks, '--', 'true')
    expect(both).toMatchObject({ code: 125, stderr: expect.stringMatching(/has one check: use/) })
  })

  it('does not let the first access token lock its creator out', async () => {
    const refused = await run('access-token', 'create', 'ci', '--right', 'claim,read:jobs/')
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    const command = /first: leasehold (.*)\n$/.exec(refused.stderr)![1]!
    const admin = (await run(...command.split(' '))).stdout.trim()
    env = { ...env, LEASEHOLD_ACCESS_TOKEN: admin }
    const made = await run('access-token', 'create', 'ci', '--right', 'claim,read:jobs/')
    expect(made).toMatchObject({ code: 0, stderr: '' })
    expect(await run('access-token', 'revoke', 'admin')).toMatchObject({ code: 1 })
  })
})
