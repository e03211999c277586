import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { FollowEnd, Log, Position } from '../../../src/log/index.ts'
import type { Engine } from '../../engines/index.ts'
import { Crowd, faultsOf, type TcpProxy } from '../../faults/index.ts'

/** A running engine and a crowd's way to it. */
export interface CrowdEngine {
  /** The servers: one, or three of a cluster. */
  readonly members: readonly Engine[]
  /** The server that leads; the only one if not given. */
  readonly leader?: () => Promise<Engine>
  /** How a server is crashed; `SIGKILL` if not given. */
  readonly crash?: NodeJS.Signals
  /** The connections between the crowd and the servers. */
  readonly lines: readonly TcpProxy[]
  /** For each server, a way to cut it off from the others, if possible. */
  readonly peerLines?: readonly Pick<TcpProxy, 'cut' | 'heal'>[]
  /** The module that opens a store in a process of the crowd, and its argument. */
  readonly module: URL
  readonly argument: string
  /** The log that the crowd uses, for the test to look at. */
  readonly log: Log
  stop(): Promise<void>
}

export interface CrowdSuite {
  readonly start: () => Promise<CrowdEngine>
  /** Why the log cannot be restored from an older copy in a test. */
  readonly notRestored?: string
}

const TTL_MS = 1500
/** Longer than any lease of the crowd lives. */
const OUTAGE_MS = 1.5 * TTL_MS
/** Long enough for an election and for a lease that must run out, on a busy machine. */
const LONG_MS = 60_000
const TEST_MS = 240_000

/**
 * A crowd locks the same keys while its processes, the connections and the engine fail. Judged only
 * by the answers that the processes got.
 */
export function crowdSuite({ start, notRestored }: CrowdSuite): void {
  let engine: CrowdEngine
  let crowd: Crowd | undefined
  beforeAll(async () => {
    engine = await start()
  })
  afterAll(async () => {
    for (const member of crowd?.members ?? []) member.kill()
    await engine?.stop()
  })

  const gather = async (prefix: string) => {
    const { module, argument } = engine
    crowd = await Crowd.gather({ module, argument, prefix, ttl: TTL_MS })
    await crowd.allHold(LONG_MS)
    return crowd
  }
  const leader = async () => (await engine.leader?.()) ?? engine.members[0]!

  it(
    'finds nothing wrong when processes are frozen and killed, and connections are cut',
    async () => {
      const crowd = await gather('clients/')
      const { lines, log } = engine
      const [first, second] = crowd.members
      first!.freeze()
      const missed = await log.tail()
      for (const line of lines) line.cut('to-client')
      await sleep(OUTAGE_MS)
      for (const line of lines) line.heal()
      second!.kill()
      await crowd.holdings(5, LONG_MS)
      const before = repliesLost(lines)
      for (const line of lines) line.loseReplies()
      await crowd.until('replies were lost', LONG_MS, () => repliesLost(lines) > before + 2)
      for (const line of lines) line.reset()
      await sleep(200)
      for (const line of lines) line.heal()
      await crowd.join()
      // The amount written until then is random, so wait for it.
      await crowd.until('the log is trimmed', LONG_MS, () => isTrimmed(log, missed))
      first!.thaw()
      await crowd.allHold(LONG_MS)
      expect(faultsOf(await crowd.leave())).toEqual([])
    },
    TEST_MS,
  )

  it(
    'finds nothing wrong when servers are killed, frozen and cut off from each other',
    async () => {
      const crowd = await gather('servers/')
      const { members, crash, peerLines = [] } = engine
      const [isCluster, isDivisible] = [members.length > 1, peerLines.length > 0]
      const killed = await leader()
      await killed.kill(crash)
      if (isCluster) await crowd.holdings(5, LONG_MS)
      await killed.restart()
      await crowd.holdings(5, LONG_MS)
      const frozen = await leader()
      await frozen.freeze()
      if (isCluster) await crowd.holdings(5, LONG_MS)
      else await sleep(OUTAGE_MS)
      frozen.thaw()
      if (isCluster) {
        const leading = await leader()
        const follower = members.find((member) => member !== leading)!
        await follower.freeze()
        await crowd.holdings(5, LONG_MS)
        follower.thaw()
      }
      if (isDivisible) {
        const alone = members.indexOf(await leader())
        peerLines[alone]!.cut()
        await crowd.holdings(5, LONG_MS)
        // None has a majority: nobody is granted anything, and nobody believes longer than its ttl.
        for (const line of peerLines) line.cut()
        await sleep(OUTAGE_MS)
        for (const line of peerLines) line.heal()
      }
      await crowd.allHold(LONG_MS)
      expect(faultsOf(await crowd.leave())).toEqual([])
    },
    TEST_MS,
  )

  it.skipIf(notRestored)(
    'is given no token twice by a log that was restored',
    async () => {
      const crowd = await gather('restored/')
      await restart((folder) => execFileSync('cp', ['-a', folder, `${folder}-copy`]))
      const kept = crowd.history.holdings.length
      await crowd.holdings(20, LONG_MS)
      const lost = crowd.history.holdings.length
      await restart((folder) => {
        execFileSync('rm', ['-rf', folder])
        execFileSync('mv', [`${folder}-copy`, folder])
      })
      await crowd.holdings(10, LONG_MS)
      await crowd.allHold(LONG_MS)
      const history = await crowd.leave()
      // A lease that is not in the copy is gone, and another may hold its keys. The resource
      // separates them by their tokens.
      expect(
        faultsOf(history, ['two holders at once', 'an acknowledged lease that was lost']),
      ).toEqual([])
      expect(lost).toBeGreaterThan(kept)
    },
    TEST_MS,
  )

  /**
   * Stops all servers, changes their folders, and starts them again. They are not killed, because
   * servers that are all killed together may lose acknowledged entries.
   */
  async function restart(change: (folder: string) => void): Promise<void> {
    const { members, crash = 'SIGTERM' } = engine
    await Promise.all(members.map((member) => member.kill(crash)))
    for (const { folder } of members) change(folder)
    await Promise.all(members.map((member) => member.restart()))
  }
}

function repliesLost(lines: readonly TcpProxy[]): number {
  return lines.reduce((sum, line) => sum + line.repliesLost, 0)
}

/** Whether entries after this position are gone from the log. Others must append meanwhile. */
export async function isTrimmed(log: Log, after: Position): Promise<boolean> {
  const end = await new Promise<FollowEnd | undefined>((resolve) => {
    const following = log.follow(after, {
      entries: () => {
        following.close()
        resolve(undefined)
      },
      ended: resolve,
    })
  })
  return end?.cause === 'trimmed'
}
