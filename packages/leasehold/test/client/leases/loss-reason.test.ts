import { describe, expect, it } from 'vitest'
import { lossBy } from '../../../src/client/leases/loss.ts'

describe('a loss', () => {
  it('by a release that the holder did not request is a revocation', () => {
    const end = { reason: 'released', by: 'bob' } as const
    expect(lossBy(end, 'it')).toMatchObject({ reason: 'revoked', by: 'bob' })
  })
})
