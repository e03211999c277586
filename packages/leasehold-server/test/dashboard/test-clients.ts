import { Leasehold } from 'leasehold'
import type { Scene } from './scene.ts'

/** Clients on the scene's own store, that are closed at the end of the block. */
export class TestClients {
  readonly leasehold: Leasehold
  readonly #others: Leasehold[] = []
  readonly #scene: Scene

  private constructor(scene: Scene, leasehold: Leasehold) {
    this.#scene = scene
    this.leasehold = leasehold
  }

  static async open(scene: Scene, holder: string): Promise<TestClients> {
    return new TestClients(scene, await Leasehold.open(scene.store, { holder }))
  }

  async as(holder: string): Promise<Leasehold> {
    const other = await Leasehold.open(this.#scene.store, { holder })
    this.#others.push(other)
    return other
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.leasehold, ...this.#others].map((it) => it.close()))
  }

  /** Something of everything that the page has a view for. */
  async fill(): Promise<void> {
    const [ada, bo, cy] = await Promise.all(['ada', 'bo', 'cy'].map((name) => this.as(name)))
    await ada!.lock('jobs/nightly', { ttl: '30s' })
    for (const other of [bo!, cy!]) other.lock('jobs/nightly', { ttl: '30s' }).catch(() => {})
    await this.#services(ada!, bo!)
    for (const one of [ada!, bo!, cy!]) this.#campaign(one)
    await this.#pool(ada!, bo!, cy!)
    await ada!.sessions('web').create({ user: 'eve@example', data: { cart: [] } })
  }

  async #services(ada: Leasehold, bo: Leasehold): Promise<void> {
    const node = await ada.registry.node('machine-1', { ttl: '30s' })
    const spec = { zone: 'b', capabilities: ['embed'], address: '10.0.0.7:80' }
    await node.register('embedder', { id: 'i-1', ...spec })
    const other = await bo.registry.register('embedder', { id: 'i-2', zone: 'a' })
    await other.report('critical', 'out of memory')
  }

  #campaign(one: Leasehold): void {
    const election = one.election('scheduler', { value: `${one.holder}:9000` })
    void election.campaign().catch(() => {})
  }

  async #pool(ada: Leasehold, bo: Leasehold, cy: Leasehold): Promise<void> {
    const resources = [
      { name: 'gpu-0', memory: 40 },
      { name: 'gpu-1', memory: 80 },
    ]
    const tenants = { research: { weight: 2 }, vision: { weight: 1 } }
    const pool = ada.pool('gpu', { resources, tenants })
    for (let at = 0; at < 4; at++) {
      const permit = await pool.take({ tenant: 'research', kind: 'train', ttl: 'adaptive' })
      await permit.release()
    }
    await pool.take({ tenant: 'research', kind: 'train', ttl: '1h' })
    await bo.pool('gpu').take({ tenant: 'vision', kind: 'embed', ttl: '1h' })
    cy.pool('gpu')
      .take({ tenant: 'vision', kind: 'embed', ttl: '1h' })
      .catch(() => {})
  }
}
