import { describe, expect, it } from 'vitest'
import { Kernel } from '../../../src/kernel/index.ts'
import type { Granted, HistoryReading, LeaseId, LeaseReading } from '../../../src/port/index.ts'

const NOW = 1_000_000

function grant(kernel: Kernel, request?: string): Granted {
  return kernel.grant({ holder: 'alice', ttl: 1000, request }, NOW) as Granted
}

describe('what a kernel retains', () => {
  it('is at least the promised number of answers, and at most twice as many', () => {
    const kernel = new Kernel({ limits: { requests: 5 } })
    for (let last = 0; last < 40; last++) {
      const answers = new Map<string, Granted>()
      for (let at = Math.max(0, last - 4); at < last; at++) {
        answers.set(`r${at}`, grant(kernel, `r${at}`))
      }
      const leases = kernel.leases
      for (const [request, answer] of answers) expect(grant(kernel, request)).toEqual(answer)
      expect(kernel.leases).toBe(leases)
      grant(kernel, `r${last}`)
    }
    const leases = kernel.leases
    for (let at = 0; at < 30; at++) grant(kernel, `r${at}`)
    expect(kernel.leases).toBe(leases + 30)
  })

  it('is at least the promised number of ends', () => {
    const kernel = new Kernel({ limits: { ended: 5 } })
    const ended: LeaseId[] = []
    const endOf = (lease: LeaseId) => (kernel.reader.read({ lease }) as LeaseReading).end
    for (let count = 0; count < 40; count++) {
      const { lease } = grant(kernel)
      kernel.revoke({ target: { lease }, why: `${count}` }, NOW)
      ended.push(lease)
      for (const [ago, id] of ended.slice(-5).reverse().entries()) {
        expect(endOf(id)?.why).toBe(`${count - ago}`)
      }
    }
    expect(endOf(ended[0]!)).toBeUndefined()
  })

  it('is the last tenures of all keys together, each under its own key', () => {
    const kernel = new Kernel({ limits: { history: 6, historyPerKey: 3 } })
    const { lease } = grant(kernel)
    const tokens: Record<string, number[]> = { a: [], b: [], c: [] }
    const all: string[] = []
    for (let count = 0; count < 50; count++) {
      const key = ['a', 'b', 'a', 'c', 'a'][count % 5]!
      const { token } = kernel.claim({ lease, claims: [{ key }] }, NOW) as { token: number }
      kernel.release({ lease, keys: [key], token }, NOW)
      tokens[key]!.unshift(token)
      all.push(key)
      for (const name of ['a', 'b', 'c']) {
        const { tenures } = kernel.reader.read({ history: name }) as HistoryReading
        const kept = all.slice(-6).filter((each) => each === name).length
        expect(tenures.map((tenure) => tenure.token)).toEqual(
          tokens[name]!.slice(0, Math.min(kept, 3)),
        )
      }
    }
  })

  it('is at least the promised number of events, complete after the revision that it names', () => {
    const kernel = new Kernel({ limits: { events: 100 } })
    const { lease } = grant(kernel)
    for (let count = 0; count < 3000; count++) {
      const { token } = kernel.claim({ lease, claims: [{ key: 'a' }] }, NOW) as { token: number }
      kernel.release({ lease, keys: ['a'], token }, NOW)
    }
    const { events } = kernel
    const first = events.after(events.completeAfter)
    expect(events.completeAfter).toBeGreaterThan(1)
    expect(events.next - first).toBeGreaterThanOrEqual(100)
    const revisions = new Set<number>()
    for (let at = first; at < events.next; at++) revisions.add(events.event(at).revision)
    const count = kernel.revision - events.completeAfter
    expect([...revisions]).toEqual(
      Array.from({ length: count }, (_, at) => events.completeAfter + 1 + at),
    )
  })
})
