import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { describeWith, findProgram } from '../../../../leasehold/test/engines/index.ts'
import { afterFile } from '../../../../leasehold/test/setup/after-file.ts'
import { kubernetesScene, LEASES, lease } from './kubernetes-scene.ts'

const KUBECTL = {
  name: 'kubectl',
  program: findProgram('kubectl'),
  args: () => [],
  ready: /$/,
}

describeWith(KUBECTL, 'kubectl', () => {
  it('creates, gets, applies, patches, replaces, watches and deletes Leases', async () => {
    const { base, get, call } = await kubernetesScene()
    const home = mkdtempSync(join(tmpdir(), 'leasehold-kubectl-'))
    afterFile(() => rmSync(home, { recursive: true }))
    const environment = { env: { ...process.env, HOME: home, KUBECONFIG: join(home, 'none') } }
    const common = ['--server', base]
    const kubectl = async (...args: string[]) =>
      (await promisify(execFile)(KUBECTL.program!, [...common, ...args], environment)).stdout
    const file = (name: string, content: object) => {
      writeFileSync(join(home, name), JSON.stringify(content))
      return join(home, name)
    }

    const reports = file('reports.json', lease('reports', { holderIdentity: 'worker-1' }))
    expect(await kubectl('apply', '-f', reports)).toContain('reports created')
    expect(await kubectl('get', 'leases')).toMatch(/^NAME +HOLDER +AGE\nreports +worker-1 +\d+s\n$/)

    const watch = spawn(
      KUBECTL.program!,
      [...common, 'get', 'leases', '-A', '--watch', '--output-watch-events', '--no-headers'],
      environment,
    )
    afterFile(() => watch.kill())
    const lines = createInterface({ input: watch.stdout })[Symbol.asyncIterator]()
    const next = async () => ((await lines.next()).value as string).split(/ +/).slice(0, 4)
    expect(await next()).toEqual(['ADDED', 'default', 'reports', 'worker-1'])

    file('reports.json', lease('reports', { holderIdentity: 'worker-2' }))
    expect(await kubectl('apply', '-f', reports)).toContain('reports configured')
    expect(await next()).toEqual(['MODIFIED', 'default', 'reports', 'worker-2'])

    const before = await get('reports')
    const patch = '[{"op":"replace","path":"/spec/holderIdentity","value":"worker-3"}]'
    await kubectl('patch', 'lease', 'reports', '--type', 'json', '--patch', patch)
    expect(await next()).toEqual(['MODIFIED', 'default', 'reports', 'worker-3'])
    const stale = kubectl('replace', '-f', file('stale.json', before))
    await expect(stale).rejects.toThrow(/\(Conflict\).*resourceVersion/)

    expect(await kubectl('delete', 'lease', 'reports')).toContain('deleted')
    expect(await next()).toEqual(['DELETED', 'default', 'reports', 'worker-3'])
    expect((await call('GET', `${LEASES}/reports`)).status).toBe(404)
  })
})
