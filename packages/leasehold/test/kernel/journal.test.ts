import { expect, it } from 'vitest'
import { Kernel, SILENT_JOURNAL } from '../../src/kernel/index.ts'
import type { Granted } from '../../src/port/index.ts'

const NOW = 1_000_000

it('a silent journal can be told everything that a kernel tells', () => {
  const kernel = new Kernel({ journal: SILENT_JOURNAL })
  const grant = (key: string, request?: string) =>
    kernel.grant({ holder: 'a', ttl: 1000, claims: [{ key }], request }, NOW) as Granted
  const { lease, token } = grant('a', 'request')
  kernel.update({ lease, key: 'a', token, value: 'v' }, NOW)
  kernel.release({ lease, keys: ['a'], token }, NOW)
  kernel.revoke({ target: { lease }, after: 10 }, NOW)
  kernel.revoke({ target: { lease: grant('b').lease } }, NOW)
  kernel.describe(0, kernel.slots, SILENT_JOURNAL)
  for (const _ of kernel.describeMemory(SILENT_JOURNAL)) expect(_).toBeUndefined()
  expect(kernel.leases).toBe(1)
})
