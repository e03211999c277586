import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { FollowEnd, Log } from '../../../src/log/index.ts'
import { isLeaseholdError, type LeaseStore } from '../../../src/port/index.ts'
import { replicaStore } from '../../../src/replica/index.ts'
import { Recorder } from '../../../src/testing/log-conformance/recorder.ts'
import { Engine, type EngineSpec } from '../../engines/index.ts'

export interface FaultSuite {
  readonly spec: EngineSpec
  /** Opens a log of this name with its own client, which reconnects automatically. */
  readonly open: (port: number, name: string) => Promise<Opened>
  /** How the engine is crashed; `SIGKILL` if not given. */
  readonly crash?: NodeJS.Signals
  /** Why the engine loses acknowledged entries when it is killed, if it does. */
  readonly losesData?: string
}

export interface Opened {
  readonly log: Log
  end(): Promise<void>
}

/** Faults of a real engine that every log must survive. Judged by the answers to callers. */
export function faultSuite({ spec, open, crash, losesData }: FaultSuite): void {
  let engine: Engine
  const opened: Opened[] = []
  const openLog = async (name: string) => {
    const one = await open(engine.port, name)
    opened.push(one)
    return one.log
  }

  beforeAll(async () => {
    engine = await Engine.start(spec)
  }, 60_000)

  afterAll(async () => {
    for (const { log, end } of opened) {
      await log.close()
      await end()
    }
    await engine?.stop()
  }, 60_000)

  it.each([
    ['something else wrote', Buffer.from('{"order":17}'), 'invalid-argument', /7b226f.*name/],
    ['a newer version wrote', Buffer.of(0x4c, 0x48, 9), 'unsupported', /format 9.*Update/],
  ])('keeps a log that %s: no store opens on it', async (name, entry, code, message) => {
    const log = await openLog(name.replaceAll(' ', '_'))
    await log.append(entry)
    const refused = { code, message: expect.stringMatching(message) }
    await expect(replicaStore(log)).rejects.toMatchObject(refused)
  })

  it('has a snapshot that is not a state: no store opens on it', async () => {
    const log = await openLog('snapshot')
    const position = await log.append(Buffer.of(0x4c, 0x48, 1))
    await log.saveSnapshot({ position, chunks: [Buffer.from('nonsense')] })
    await expect(replicaStore(log)).rejects.toMatchObject({
      code: expect.stringMatching(/^(storage-damaged|unsupported)$/),
      message: expect.stringContaining(`${position}`),
    })
  })

  it('gets an entry that is too large: it is refused with both sizes', async () => {
    const log = await openLog('large')
    const { entryBytes } = log.promises
    await expect(log.append(new Uint8Array(entryBytes + 1))).rejects.toMatchObject({
      code: 'limit-exceeded',
      message: expect.stringMatching(`${entryBytes + 1} bytes.*${entryBytes}: split it`),
    })
  })

  it.skipIf(losesData)(
    'is killed and restarted: tokens keep rising, and a new replica agrees',
    async () => {
      const stores = [
        await replicaStore(await openLog('killed'), { timeout: 30_000 }),
        await replicaStore(await openLog('killed'), { timeout: 30_000 }),
      ]
      const tokens: number[] = []
      let restarting: Promise<void> | undefined
      for (let round = 0; round < 30; round++) {
        if (round === 10) restarting = engine.kill(crash).then(() => engine.restart())
        tokens.push(await takeAndFree(stores[round % 2]!, `request-${round}`))
      }
      await restarting
      expect(tokens).toEqual([...new Set(tokens)].sort((one, other) => one - other))
      const token = await take(stores[0]!, 'held')
      const third = await replicaStore(await openLog('killed'))
      expect((await third.read({ key: 'held' })).claims).toMatchObject([{ token }])
      for (const store of [...stores, third]) await store.close()
    },
    120_000,
  )

  it('is frozen: calls end in time with an unknown outcome, and it continues afterwards', async () => {
    const log = await openLog('frozen')
    await log.append(Buffer.from('before'))
    await engine.freeze()
    const began = performance.now()
    const calls = await Promise.allSettled([log.append(Buffer.from('during')), log.tail()])
    const took = performance.now() - began
    engine.thaw()
    for (const call of calls) {
      const error = call.status === 'rejected' ? call.reason : undefined
      expect(isLeaseholdError(error) && error.outcome).toBe('unknown')
    }
    expect(took).toBeLessThan(log.promises.timeout + 3000)
    await expect
      .poll(() => log.append(Buffer.from('after')), { timeout: 30_000 })
      .toBeGreaterThan(0)
    const follower = new Recorder(log, 0, 15_000)
    // Entries sent while it was frozen may exist or not; no other is missing or duplicated.
    await expect.poll(() => follower.texts.at(-1), { timeout: 15_000 }).toBe('after')
    expect(follower.texts.filter((text) => text !== 'during').slice(0, 2)).toEqual([
      'before',
      'after',
    ])
    follower.close()
  }, 60_000)

  it.skipIf(losesData)(
    'returns with older data: a follower learns that the log ends before it',
    async () => {
      const log = await openLog('older')
      await log.append(Buffer.from('kept'))
      const kept = await log.tail()
      await engine.kill(crash)
      const [data, copy] = [engine.folder, `${engine.folder}-copy`]
      execFileSync('cp', ['-a', data, copy])
      await engine.restart()
      let last = 0
      for (let count = 0; count < 5; count++) {
        last = await again(() => log.append(Buffer.from(`lost ${count}`)))
      }
      expect(last).toBeGreaterThan(kept)
      await engine.kill(crash)
      execFileSync('rm', ['-rf', data])
      execFileSync('mv', [copy, data])
      await engine.restart()
      expect(await firstEnd(log, last)).toEqual({ cause: 'ahead', tail: kept })
    },
    60_000,
  )
}

/** Locks a key; repeats the request with the same id until it is answered. Returns the token. */
export async function take(store: LeaseStore, key: string, request = key): Promise<number> {
  return (await grant(store, key, request)).token
}

/** The same, and unlocks it. */
export async function takeAndFree(store: LeaseStore, request: string): Promise<number> {
  const { lease, token } = await grant(store, 'key', request)
  await again(() => store.revoke({ target: { lease }, request: `${request}-end` }))
  return token
}

async function grant(store: LeaseStore, key: string, request: string) {
  const asked = { holder: 'h', ttl: 60_000, claims: [{ key }], request }
  const granted = await again(() => store.grant(asked))
  if (granted.outcome !== 'granted' || !granted.holds) throw new Error(`${key} is not held`)
  return { lease: granted.lease, token: granted.token! }
}

async function again<Answer>(call: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (!isLeaseholdError(error) || error.outcome !== 'unknown') throw error
      await sleep(20)
    }
  }
}

/** Follows until the log reports anything other than an unreachable engine. */
async function firstEnd(log: Log, after: number): Promise<FollowEnd> {
  for (;;) {
    const end = await new Promise<FollowEnd>((ended) => {
      log.follow(after, { entries: () => {}, ended })
    })
    if (end.cause !== 'interrupted') return end
    await sleep(20)
  }
}
