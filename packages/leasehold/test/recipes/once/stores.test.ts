import { describe, expect, it } from 'vitest'
import type { Leasehold, Lock } from '../../../src/index.ts'
import { inNewScene, SCENES } from '../scenes/scene.ts'

describe.each(SCENES)('once on $name', ({ make }) => {
  const inScene = inNewScene(make)

  it(
    'runs in one of twenty processes that want it at once, and all get its result',
    inScene(async (scene) => {
      const names = Array.from({ length: 20 }, (_, i) => `p${i}`)
      const fleet = await Promise.all(names.map((name) => scene.open(name)))
      let runs = 0
      const work = async () => {
        runs++
        await scene.pass(20)
        return { rows: 7 }
      }
      const calls = settled(Promise.all(fleet.map((it) => it.once('report/2026-11', work))))
      await scene.until('all have it', () => calls.value !== undefined)
      const all = calls.value!
      expect(runs).toBe(1)
      expect(all.filter(({ ran }) => ran)).toHaveLength(1)
      expect(new Set(all.map(({ result }) => JSON.stringify(result)))).toEqual(
        new Set(['{"rows":7}']),
      )
      const by = new Set(all.map((each) => each.by))
      expect(by.size).toBe(1)
      expect(await fleet[3]!.onceResult('report/2026-11')).toMatchObject({ result: { rows: 7 } })
      expect(await fleet[3]!.onceResult('report')).toBeUndefined()
    }),
  )

  it(
    'runs again if the process that ran it died',
    inScene(async (scene) => {
      const [a, b] = [await scene.open('a'), await scene.open('b')]
      const began = start(a, 'job', { ttl: '2s' })
      await scene.until('a runs it', () => began.lock !== undefined)
      const first = began.lock!.claimToken
      const second = settled(b.once('job', ({ token }) => token))
      scene.kill(a)
      await scene.until('b has done it', () => second.value !== undefined)
      const { result, ...done } = second.value!
      expect(done).toMatchObject({ ran: true, by: 'b' })
      expect(result).toBeGreaterThan(first)
    }),
  )

  it(
    'is forgotten on request, and runs again',
    inScene(async (scene) => {
      const a = await scene.open('a')
      expect(await a.forgetOnce('job')).toBe(false)
      await a.once('job', () => 1)
      expect(await a.once('job', () => 2)).toMatchObject({ ran: false, result: 1 })
      expect(await a.forgetOnce('job')).toBe(true)
      expect(await a.once('job', () => 3)).toMatchObject({ ran: true, result: 3 })
    }),
  )
})

/** Starts work that never ends, and shows its lock. */
function start(leasehold: Leasehold, name: string, options: { ttl: '2s' }) {
  const began: { lock: Lock | undefined } = { lock: undefined }
  leasehold
    .once(
      name,
      (lock) => {
        began.lock = lock
        return new Promise(() => {})
      },
      options,
    )
    .catch(() => {})
  return began
}

/** The value of a promise, once it has one: a test in virtual time must not wait for it. */
function settled<Value>(promise: Promise<Value>) {
  const result: { value: Value | undefined } = { value: undefined }
  void promise.then((value) => {
    result.value = value
  })
  return result
}
