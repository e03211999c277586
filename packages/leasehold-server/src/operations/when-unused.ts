import type { Clock } from 'leasehold/port'
import type { LeaseServer } from '../server.ts'

const LOOK_EVERY_MS = 1000

/** Calls `unused` once no stream was open, no agent was active and no request came for `ms`. */
export function whenUnused(
  server: Pick<LeaseServer, 'stats' | 'httpStats' | 'mcp'>,
  clock: Clock,
  ms: number,
  unused: () => void,
): void {
  let usedAt = clock.now()
  let seen = 0
  const look = () => {
    // A stream that came and went between two looks counts too.
    const { stats, httpStats, mcp } = server
    const total = stats.connected + httpStats.requests + mcp.stats.requests
    const isUsed = stats.connections > 0 || mcp.activeAgents > 0
    if (isUsed || total !== seen) usedAt = clock.now()
    seen = total
    if (clock.now() - usedAt >= ms) unused()
    else clock.timer(clock.now() + Math.min(ms, LOOK_EVERY_MS), look)
  }
  look()
}
