import {
  ApiException,
  CoordinationV1Api,
  KubeConfig,
  makeInformer,
  type V1Lease,
  V1MicroTime,
} from '@kubernetes/client-node'
import { describe, expect, it } from 'vitest'
import { kubernetesScene } from './kubernetes-scene.ts'

const namespace = 'kube-node-lease'

describe('@kubernetes/client-node', async () => {
  const scene = await kubernetesScene()
  await scene.createToken('root', 'all:')
  const config = new KubeConfig()
  config.loadFromClusterAndUser(
    { name: 'leasehold', server: scene.base, skipTLSVerify: true },
    { name: 'node', token: await scene.createToken('node', 'all:kubernetes/') },
  )
  const leases = config.makeApiClient(CoordinationV1Api)

  it('sends the heartbeats of a node, and an informer sees each, also after a restart', async () => {
    const seen: string[] = []
    let notify = () => {}
    const informer = makeInformer(
      config,
      `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`,
      () => leases.listNamespacedLease({ namespace }),
    )
    for (const type of ['add', 'update', 'delete'] as const) {
      informer.on(type, ({ metadata, spec }) => {
        seen.push(`${type} ${metadata?.name} ${spec?.leaseTransitions}`)
        notify()
      })
    }
    // While the server restarts, connections fail.
    informer.on('error', () => void setTimeout(() => informer.start(), 50))
    const saw = async (line: string) => {
      while (!seen.includes(line)) await new Promise<void>((resolve) => (notify = resolve))
    }
    await informer.start()
    const beat = async (before: V1Lease, leaseTransitions: number) =>
      leases.replaceNamespacedLease({
        ...{ namespace, name: 'node-1' },
        body: { ...before, spec: { ...before.spec, leaseTransitions, renewTime: now() } },
      })
    const now = () => new V1MicroTime()
    let node = await leases.createNamespacedLease({
      namespace,
      body: {
        metadata: { name: 'node-1' },
        spec: { holderIdentity: 'node-1', leaseDurationSeconds: 40, leaseTransitions: 0 },
      },
    })
    await saw('add node-1 0')
    const first = node
    node = await beat(node, 1)
    await saw('update node-1 1')
    expect(node.spec?.renewTime).toMatch(/T\d\d:\d\d:\d\d\.\d{6}Z$/)
    const late = await beat(first, 9).catch((error: unknown) => error)
    expect(late).toBeInstanceOf(ApiException)
    expect((late as ApiException<unknown>).code).toBe(409)
    await scene.restart(async () => {})
    node = await beat(node, 2)
    await saw('update node-1 2')
    await leases.deleteNamespacedLease({ namespace, name: 'node-1' })
    await saw('delete node-1 2')
    await informer.stop()
    expect(seen).not.toContain('update node-1 9')
  })
})
