import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { Leasehold } from '../../../src/index.ts'
import type { LeaseStore } from '../../../src/port/index.ts'
import { fileStore } from '../../../src/stores/file/index.ts'

async function endsOf(store: LeaseStore, key: string) {
  const { tenures } = await store.read({ history: key })
  return tenures.map(({ end: { reason, by, why } }) => ({ reason, by, why }))
}

const BROKEN = { reason: 'broken', by: 'ops', why: 'too slow' }

it('the history of a key on disk shows that its lease was broken, even after a reopen', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'leasehold-breaking-'))
  let store = await fileStore(folder)
  const leasehold = await Leasehold.open(store, { holder: 'me' })
  const lock = await leasehold.lock('k', { ttl: '5s' })
  await store.revoke({
    target: { lease: lock.lease },
    by: 'ops',
    why: 'too slow',
    after: 1000,
  })
  await expect.poll(() => endsOf(store, 'k'), { timeout: 10_000 }).toEqual([BROKEN])
  expect(lock.signal.reason).toMatchObject({ code: 'lost', ...BROKEN })
  await leasehold.close()
  await store.close()
  store = await fileStore(folder)
  expect(await endsOf(store, 'k')).toEqual([BROKEN])
  await store.close()
  await rm(folder, { recursive: true })
})
