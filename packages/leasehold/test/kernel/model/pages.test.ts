import { describe, expect, it } from 'vitest'
import { Kernel } from '../../../src/kernel/index.ts'
import type { Granted } from '../../../src/port/index.ts'

const NOW = 1_000_000

function hold(kernel: Kernel, key: string): void {
  kernel.grant({ holder: 'alice', ttl: 1000, claims: [{ key }] }, NOW)
}

describe('a revoke of many claims', () => {
  it('removes one page of claims, and says whether there are more', () => {
    const kernel = new Kernel({ limits: { page: 3 } })
    for (const key of ['a', 'a', 'a', 'b', 'b', 'c', 'd']) hold(kernel, key)
    const revoke = () => kernel.revoke({ target: { prefix: '' } }, NOW)
    expect(revoke()).toMatchObject({ claims: 3, leases: 0, more: true })
    expect(kernel.reader.read({ key: 'a' })).toMatchObject({ count: 0 })
    expect(revoke()).toMatchObject({ claims: 3, more: true })
    expect(revoke()).toMatchObject({ claims: 1, more: false })
    expect(revoke()).toMatchObject({ claims: 0, more: false })
  })

  it('stops in the middle of a key at the end of the page, and the next claim holds', () => {
    const kernel = new Kernel({ limits: { page: 2 } })
    for (let count = 0; count < 5; count++) hold(kernel, 'a')
    expect(kernel.revoke({ target: { key: 'a' } }, NOW)).toMatchObject({ claims: 2, more: true })
    expect(kernel.reader.read({ key: 'a' })).toMatchObject({ count: 3, holders: 1 })
    expect(kernel.reader.read({ history: 'a' })).toMatchObject({ tenures: [{ token: 1 }] })
  })

  it('ends one page of children, each with all its descendants', () => {
    const kernel = new Kernel({ limits: { page: 2 } })
    const grant = (parent?: string) =>
      (kernel.grant({ holder: 'alice', ttl: 1000, parent }, NOW) as Granted).lease
    const parent = grant()
    for (let count = 0; count < 3; count++) grant(grant(parent))
    const revoke = () => kernel.revoke({ target: { parent } }, NOW)
    expect(revoke()).toMatchObject({ leases: 4, more: true })
    expect(revoke()).toMatchObject({ leases: 2, more: false })
    expect(revoke()).toMatchObject({ leases: 0, more: false })
    expect(kernel.leases).toBe(1)
  })
})
