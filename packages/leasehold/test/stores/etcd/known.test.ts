import { expect, it } from 'vitest'
import { systemClock } from '../../../src/port/index.ts'
import { Known } from '../../../src/stores/etcd/known.ts'
import { Layout, leaseDigits, writeLease } from '../../../src/stores/etcd/layout.ts'

it('what is known of a lease in etcd stays, where an older reading is heard of later', () => {
  const layout = new Layout('leasehold/')
  const known = new Known(undefined as never, layout, systemClock)
  const key = layout.lease(leaseDigits(7))
  const record = { holder: 'a', ttl: 2000, grace: 0, grantedAt: 0, labels: {}, ending: undefined }
  const life = { lease: 8, endOfLife: 3000, end: { reason: 'broken' } } as const
  const before = writeLease({ ...record, life: undefined })
  const broken = writeLease({ ...record, life })
  known.learn({ key, value: before, created: 5, changed: 5 })
  known.learn({ key, value: broken, created: 5, changed: 9 })
  const lease = known.learn({ key, value: before, created: 5, changed: 5 })
  expect(lease).toMatchObject({ changed: 9, record: { life: { lease: 8 } } })
})
