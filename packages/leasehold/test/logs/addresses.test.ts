import { openStore } from 'leasehold-server'
import { expect, it } from 'vitest'
import {
  AZURITE,
  AZURITE_KEY,
  azuriteUrl,
  describeWith,
  Engine,
  type EngineSpec,
  NATS,
  POSTGRES_UNSYNCED,
  postgresUrl,
  REDIS,
} from '../engines/index.ts'

const ADDRESSES: readonly [EngineSpec, string, (port: number) => string][] = [
  [NATS, 'nats', (port) => `nats://127.0.0.1:${port}/leases`],
  [REDIS, 'redis', (port) => `redis://127.0.0.1:${port}?form=log&namespace=n`],
  [POSTGRES_UNSYNCED, 'postgres', (port) => `${postgresUrl(port)}?form=log`],
  [
    AZURITE,
    'azure',
    (port) => {
      const login = `a:${encodeURIComponent(AZURITE_KEY)}@`
      return `azure+${azuriteUrl(port, 'leases').replace('://', `://${login}`)}`
    },
  ],
]

for (const [spec, name, address] of ADDRESSES) {
  describeWith(spec, `the address of a log on ${name}`, () => {
    it('opens the same leases for every server', async () => {
      const engine = await Engine.start(spec)
      const url = address(engine.port)
      const [one, other] = [await openStore(url), await openStore(url)]
      expect(one).toMatchObject({ name, shared: true })
      expect(one.data).not.toContain(encodeURIComponent(AZURITE_KEY))
      const granted = await one.store.grant({ holder: 'h', ttl: 60_000, claims: [{ key: 'k' }] })
      expect(granted).toMatchObject({ outcome: 'granted', holds: true })
      const { claims } = await other.store.read({ key: 'k' })
      expect(claims).toMatchObject([{ holder: 'h' }])
      await one.close()
      await other.close()
      await engine.stop()
    }, 60_000)
  })
}
