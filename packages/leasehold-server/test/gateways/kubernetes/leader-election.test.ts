import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { describeWith, findBuilt } from '../../../../leasehold/test/engines/index.ts'
import { afterFile } from '../../../../leasehold/test/setup/after-file.ts'
import { kubernetesScene, type lease } from './kubernetes-scene.ts'

/** A program of ours with client-go, built by scripts/go-engines.sh. */
const built = (name: string) => ({
  name,
  program: findBuilt(name),
  builtWith: 'go' as const,
  args: () => [],
  ready: /$/,
})

/** `elect/main.go` */
const ELECT = built('client-go-elect')
/** `migration/main.go` */
const MIGRATION = built('client-go-migration')

describeWith(ELECT, "client-go's leader election", () => {
  it('has one leader, a new one after it dies, and none after that one resigns', async () => {
    const { base, call, createToken } = await kubernetesScene()
    await createToken('root', 'all:')
    const right = 'claim,renew,read:kubernetes/leases/default/my-app'
    const token = await createToken('candidate', right)
    const path = '/apis/coordination.k8s.io/v1/namespaces/default/leases/my-app'
    const object = async () =>
      (await call('GET', path, undefined, { authorization: `Bearer ${token}` })).body as ReturnType<
        typeof lease
      > & { metadata: { resourceVersion: string } }
    const candidate = (identity: string) => {
      const child = spawn(ELECT.program!, [base, 'my-app', identity], {
        env: { ...process.env, TOKEN: token },
        stdio: ['pipe', 'pipe', 'inherit'],
      })
      afterFile(() => child.kill('SIGKILL'))
      return { child, saw: linesOf(child) }
    }
    const first = candidate('first')
    await first.saw('leading')
    const second = candidate('second')
    await second.saw('leader first')
    const held = await object()
    const time = expect.stringMatching(/\.\d{6}Z$/)
    const times = { acquireTime: time, renewTime: time }
    expect(held.spec).toMatchObject({ holderIdentity: 'first', leaseTransitions: 0, ...times })

    first.child.kill('SIGKILL')
    await second.saw('leading')
    const taken = await object()
    expect(taken.spec).toMatchObject({ holderIdentity: 'second', leaseTransitions: 1 })
    const version = ({ metadata }: typeof taken) => Number(metadata.resourceVersion)
    expect(version(taken)).toBeGreaterThan(version(held))

    second.child.stdin!.end()
    await second.saw('stopped')
    expect((await object()).spec).toMatchObject({ holderIdentity: '' })
  })
})

describe('the Go program of docs/migration.md', () => {
  const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8')

  it('is the one that is built', () => {
    const [, shown] = /```go\n(.*?)```/s.exec(read('../../../../../docs/migration.md'))!
    expect(read('migration/main.go')).toContain(shown!.replace(/^(?=.)/gm, '\t'))
  })

  describeWith(MIGRATION, 'with client-go', () => {
    it('leads, stops, and leaves the lease to the next', async () => {
      const { base, get } = await kubernetesScene()
      for (const identity of ['first', 'second']) {
        const { stdout } = await promisify(execFile)(MIGRATION.program!, [base, identity])
        expect(stdout).toBe(`${identity} leads\n${identity} stopped\n`)
        expect((await get('scheduler')).spec.holderIdentity).toBe('')
      }
      expect((await get('scheduler')).spec.leaseTransitions).toBe(1)
    })
  })
})

/** Waits for a line, which may have been printed before. */
function linesOf(child: ChildProcess): (line: string) => Promise<void> {
  const printed: string[] = []
  let notify = () => {}
  createInterface({ input: child.stdout! }).on('line', (line) => {
    printed.push(line)
    notify()
  })
  return async (line) => {
    while (!printed.includes(line)) {
      await new Promise<void>((resolve) => {
        notify = resolve
      })
    }
  }
}
