import { expect, it } from 'vitest'
import { fileStore } from '../../../../src/stores/file/index.ts'
import { rest, SMALL, StillClock } from '../harness.ts'
import { MemoryDisk } from '../memory-disk.ts'

const lease = { holder: 'h', ttl: 600_000 }

it('on a slow disk, calls that add to the log are refused above 64 MiB, and others are accepted', async () => {
  const disk = new MemoryDisk()
  const clock = new StillClock()
  const options = { disk, clock, limits: SMALL, segmentBytes: 65_536, snapshotBytes: 1 << 30 }
  const store = await fileStore('memory', options)
  const { lease: id } = (await store.grant(lease)) as { lease: string }
  let open = () => {}
  disk.gate = new Promise((resolve) => {
    open = resolve
  })
  const grants = [store.grant(lease)]
  await rest(3)
  const value = 'v'.repeat(65_000)
  const claims = Array.from({ length: 200 }, (_, at) => ({ key: `k${at}`, value }))
  for (let count = 0; count < 6; count++) grants.push(store.grant({ ...lease, claims }))
  await expect(store.grant(lease)).rejects.toMatchObject({ code: 'limit-exceeded' })
  const revoked = store.revoke({ target: { lease: id } })
  disk.gate = undefined
  open()
  await Promise.all(grants)
  expect((await revoked).leases).toBe(1)
  await store.grant(lease)
  await store.close()
})
