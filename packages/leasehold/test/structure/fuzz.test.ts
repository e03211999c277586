import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Report } from '../../../../fuzz/child.ts'
import { showsStack, signatureOf } from '../../../../fuzz/failure.ts'
import { FuzzRun } from '../../../../fuzz/loop.ts'
import { PauseMeter } from '../../../../fuzz/pause-meter.ts'
import { Random } from '../../../../fuzz/random.ts'
import type { Target } from '../../../../fuzz/target.ts'
import { TARGETS } from '../../../../fuzz/targets/index.ts'
import { judge } from '../../../../soak/plateau.ts'
import { ROOT } from './source-files.ts'

const FINE: Report = { fresh: 0, pause: 1, rss: 0 }

describe('the fuzzer', () => {
  let folder: string

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'leasehold-fuzzer-'))
    vi.spyOn(process.stdout, 'write').mockImplementation(() => true)
  })

  afterEach(() => {
    vi.restoreAllMocks()
    rmSync(folder, { recursive: true })
  })

  /** A target whose inputs are numbers, and its reports. */
  function target(report: (input: number, coverage: boolean) => Report): Target<number> {
    return {
      name: 'numbers',
      start: async (coverage) => ({
        run: async (input) => report(input, coverage),
        stop: async () => {},
      }),
      generate: (random) => random.below(10),
      mutate: (input) => input + 1,
    }
  }

  const fuzz = (report: (input: number, coverage: boolean) => Report) =>
    new FuzzRun(target(report), 1, folder).run(300)

  it('changes inputs that reach new code, and so finds what random inputs would not', async () => {
    let highest = -1
    const summary = await fuzz((input) => {
      if (input >= 60) return { ...FINE, failure: { kind: 'crash', detail: 'sixty' } }
      const isNew = input > highest
      if (isNew) highest = input
      return { ...FINE, fresh: isNew ? 1 : 0 }
    })
    expect(summary.failures).toBe(1)
    expect(readdirSync(join(folder, 'failures/numbers'))).toHaveLength(1)
  })

  it('starts with the committed inputs', async () => {
    mkdirSync(join(folder, 'corpus/numbers'), { recursive: true })
    writeFileSync(join(folder, 'corpus/numbers/seed.json'), '1000000')
    const seen = new Set<number>()
    await fuzz((input) => {
      seen.add(input)
      return FINE
    })
    expect(seen.has(1_000_000)).toBe(true)
  })

  it('counts a pause or a hang only if it repeats without coverage', async () => {
    const slow = { ...FINE, pause: 500 }
    expect((await fuzz((_, coverage) => (coverage ? slow : FINE))).failures).toBe(0)
    expect((await fuzz(() => slow)).failures).toBe(1)
    const hang: Report = { ...FINE, failure: { kind: 'hang', detail: 'no answer' } }
    expect((await fuzz((_, coverage) => (coverage ? hang : FINE))).failures).toBe(0)
    expect((await fuzz(() => hang)).failures).toBe(1)
  })

  it('replays an input, and says whether it still fails', async () => {
    const report = (input: number): Report =>
      input === 7 ? { ...FINE, failure: { kind: 'crash', detail: 'seven' } } : FINE
    expect(await new FuzzRun(target(report), 1, folder).replay(7)).toBe(true)
    expect(await new FuzzRun(target(report), 1, folder).replay(8)).toBe(false)
  })

  it('distinguishes failures by their words, not by their numbers', () => {
    const crash = (detail: string) => signatureOf({ kind: 'crash', detail })
    expect(crash('at line 5')).toBe(crash('at line 77'))
    expect(crash('key "a" is wrong')).toBe(crash('key "b" is wrong'))
    expect(crash('x is undefined')).not.toBe(crash('y is undefined'))
  })

  it('knows a stack trace', () => {
    expect(showsStack(new Error('x').stack!)).toBe(true)
    expect(showsStack('{"detail":"Error: x\\n    at Foo.bar (file:1:2)"}')).toBe(true)
    expect(showsStack('{"detail":"look at this"}')).toBe(false)
  })

  it('repeats a run by its seed', () => {
    const numbers = (seed: number) => {
      const random = new Random(seed)
      return Array.from({ length: 20 }, () => random.below(1000))
    }
    expect(numbers(5)).toEqual(numbers(5))
    expect(numbers(5)).not.toEqual(numbers(6))
  })

  it('measures a busy turn by its processor time, and not the time for which it slept', () => {
    const meter = new PauseMeter()
    meter.take()
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150)
    expect(meter.take()).toBeLessThan(100)
    const { user, system } = process.cpuUsage()
    let used = 0
    while (used < 150_000) {
      const now = process.cpuUsage()
      used = now.user + now.system - user - system
    }
    expect(meter.take()).toBeGreaterThan(50)
  })

  it('has committed inputs for every target', () => {
    for (const { name } of TARGETS) {
      expect(readdirSync(join(ROOT, 'fuzz/corpus', name)).length, name).toBeGreaterThan(4)
    }
  })
})

describe('a soak', () => {
  const measure = { name: 'leases', unit: '', fraction: 0.05, atLeast: 5 }
  const times = Array.from({ length: 60 }, (_, index) => index)
  const judged = (value: (index: number) => number) => judge(measure, times, times.map(value))

  it('accepts a value that rises in the first third and then stays', () => {
    expect(judged((index) => Math.min(index, 20)).isPlateau).toBe(true)
    expect(judged((index) => 100 + (index % 4)).isPlateau).toBe(true)
    expect(judged((index) => 100 - index).isPlateau).toBe(true)
  })

  it('fails a value that keeps growing', () => {
    expect(judged((index) => 100 + index)).toMatchObject({ isPlateau: false, growth: 39 })
    expect(judged((index) => 100 + index / 2 + (index % 4)).isPlateau).toBe(false)
  })

  it('allows a part of the mean, or a number, whichever is more', () => {
    expect(judged((index) => index / 10).allowed).toBe(5)
    expect(judged(() => 1000).allowed).toBe(50)
    expect(judged((index) => 1000 + index).isPlateau).toBe(true)
  })
})
