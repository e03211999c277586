import { expect, it } from 'vitest'
import { DISCARD_CHANGES, Kernel } from '../../src/kernel/index.ts'
import type { Granted } from '../../src/port/index.ts'

const NOW = 1_000_000

it('DISCARD_CHANGES accepts every change that a kernel reports', () => {
  const kernel = new Kernel({ changeSink: DISCARD_CHANGES })
  const grant = (key: string, request?: string) =>
    kernel.grant({ holder: 'a', ttl: 1000, claims: [{ key }], request }, NOW) as Granted
  const { lease, token } = grant('a', 'request')
  kernel.update({ lease, key: 'a', token, value: 'v' }, NOW)
  kernel.release({ lease, keys: ['a'], token }, NOW)
  kernel.revoke({ target: { lease }, after: 10 }, NOW)
  kernel.revoke({ target: { lease: grant('b').lease } }, NOW)
  kernel.describe(0, kernel.slots, DISCARD_CHANGES)
  for (const _ of kernel.describeRetained(DISCARD_CHANGES)) expect(_).toBeUndefined()
  expect(kernel.leases).toBe(1)
})
