import { TestClock } from 'leasehold/testing'
import { describe, expect, it } from 'vitest'
import { whenUnused } from '../../src/operations/when-unused.ts'

function scene() {
  const clock = new TestClock()
  const stats = { connections: 0, connected: 0 }
  const httpStats = { requests: 0 }
  let unused = 0
  const mcp = { stats: { requests: 0 }, activeAgents: 0 }
  whenUnused({ stats, httpStats, mcp } as never, clock, 60_000, () => unused++)
  return { clock, stats, httpStats, mcp, count: () => unused }
}

describe('a server that exits when it is unused', () => {
  it('stops once, after the whole time without a stream or a request', async () => {
    const { clock, count } = scene()
    await clock.advance(59_000)
    expect(count()).toBe(0)
    await clock.advance(120_000)
    expect(count()).toBe(1)
  })

  it('stays while a stream is open, and counts again when it is closed', async () => {
    const { clock, stats, count } = scene()
    stats.connections = stats.connected = 1
    await clock.advance(600_000)
    expect(count()).toBe(0)
    stats.connections = 0
    await clock.advance(58_000)
    expect(count()).toBe(0)
    await clock.advance(3000)
    expect(count()).toBe(1)
  })

  it('stays for a stream or request that came and went between two looks', async () => {
    const { clock, stats, httpStats, count } = scene()
    await clock.advance(50_000)
    stats.connected++
    await clock.advance(50_000)
    httpStats.requests++
    await clock.advance(50_000)
    expect(count()).toBe(0)
  })

  it('stays while an agent holds something over HTTP, and after its requests', async () => {
    const { clock, mcp, count } = scene()
    mcp.activeAgents = 1
    await clock.advance(600_000)
    mcp.activeAgents = 0
    await clock.advance(50_000)
    mcp.stats.requests++
    await clock.advance(50_000)
    expect(count()).toBe(0)
  })
})
