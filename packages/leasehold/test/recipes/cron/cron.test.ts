import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type CronOptions, type CronSchedule, Leasehold } from '../../../src/index.ts'
import { type Claim, LeaseholdError } from '../../../src/port/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../../client/faulty-store.ts'

const MINUTE = 60_000

/** A fleet whose processes run one job, and note what they ran. */
class Fleet {
  readonly clock = new TestClock()
  readonly store = memoryStore({ clock: this.clock })
  readonly runs: { by: string; time: string; token: number }[] = []
  readonly events: string[] = []
  /** How long each run takes. */
  takes = 0

  async open(by: string, options: CronOptions = {}, schedule: CronSchedule = { every: '1m' }) {
    const link = new FaultyStore(this.store, this.clock)
    const leasehold = await Leasehold.open(link, { clock: this.clock, holder: by, timeout: '1s' })
    leasehold.on('recipe-event', ({ recipe, event }) => {
      if (recipe === 'cron') this.events.push(event)
    })
    const work = async ({ time, lock }: { time: Date; lock: { token: number } }) => {
      this.runs.push({ by, time: time.toISOString(), token: lock.token })
      if (this.takes > 0) await this.#pass(this.takes)
    }
    const job = await leasehold.cron('nightly', schedule, work, { ttl: '2s', ...options })
    return { job, link, leasehold }
  }

  get times(): readonly string[] {
    return this.runs.map(({ time }) => time)
  }

  #pass(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.timer(this.clock.now() + ms, resolve))
  }
}

/** The minutes after `from` up to `to`, as the schedule names them. */
function minutes(from: number, to: number): string[] {
  const times: string[] = []
  for (let time = (Math.floor(from / MINUTE) + 1) * MINUTE; time <= to; time += MINUTE) {
    times.push(new Date(time).toISOString())
  }
  return times
}

function untilNextMinute(from: number): number {
  return MINUTE - (from % MINUTE)
}

describe('cron', () => {
  it('runs each time of the schedule in one of three processes', async () => {
    const fleet = new Fleet()
    const begun = fleet.clock.now()
    for (const name of ['a', 'b', 'c']) await fleet.open(name)
    await fleet.clock.advance(10 * MINUTE + 100)
    expect(fleet.times).toEqual(minutes(begun, fleet.clock.now()))
    expect(new Set(fleet.runs.map(({ by }) => by)).size).toBe(1)
    expect(new Set(fleet.events)).toEqual(new Set(['ran']))
  })

  it('says who is active and when it runs next', async () => {
    const fleet = new Fleet()
    const a = await fleet.open('a')
    const b = await fleet.open('b')
    await fleet.clock.advance(100)
    expect([a.job.active, b.job.active]).toEqual([true, false])
    expect(a.job.next!.toISOString()).toBe(
      minutes(fleet.clock.now(), fleet.clock.now() + MINUTE)[0],
    )
    expect(b.job.next).toBeUndefined()
  })

  it('hands over when it is closed, after the current run, and leaves nothing out', async () => {
    const fleet = new Fleet()
    fleet.takes = 5000
    const begun = fleet.clock.now()
    const a = await fleet.open('a')
    await fleet.open('b')
    await fleet.clock.advance(untilNextMinute(begun) + 1000)
    expect(fleet.runs).toHaveLength(1)
    let closed = false
    void a.job.close().then(() => {
      closed = true
    })
    await fleet.clock.advance(1000)
    expect(closed).toBe(false)
    await fleet.clock.advance(5 * MINUTE)
    expect(closed).toBe(true)
    expect(fleet.times).toEqual(minutes(begun, fleet.clock.now()))
    expect(fleet.runs.map(({ by }) => by).slice(1)).not.toContain('a')
  })

  it('runs again what a dead process had begun, with a higher token', async () => {
    const fleet = new Fleet()
    fleet.takes = 20_000
    const a = await fleet.open('a')
    await fleet.open('b')
    await fleet.clock.advance(untilNextMinute(fleet.clock.now()) + 1000)
    a.link.freeze()
    await fleet.clock.advance(MINUTE / 2)
    const [first, second] = fleet.runs
    expect(second).toMatchObject({ by: 'b', time: first!.time })
    expect(second!.token).toBeGreaterThan(first!.token)
    await fleet.clock.advance(30 * MINUTE)
    expect(fleet.times.slice(1)).toEqual([...new Set(fleet.times)])
  })

  it('runs later what was due while no process was there', async () => {
    const fleet = new Fleet()
    const begun = fleet.clock.now()
    const a = await fleet.open('a')
    await fleet.clock.advance(2 * MINUTE)
    await a.leasehold.close()
    await fleet.clock.advance(10 * MINUTE)
    await fleet.open('b')
    await fleet.clock.advance(100)
    expect(fleet.times).toEqual(minutes(begun, fleet.clock.now()))
  })

  it('repeats nothing if a late message has set the position back', async () => {
    const fleet = new Fleet()
    const begun = fleet.clock.now()
    const a = await fleet.open('a')
    await fleet.clock.advance(5 * MINUTE)
    await a.leasehold.close()
    const key = 'cron/nightly/position'
    const [{ lease, token }] = (await fleet.store.read({ key })).claims as [Claim]
    await fleet.store.update({ lease, key, token, value: String(begun) })
    await fleet.open('b')
    await fleet.clock.advance(5 * MINUTE)
    expect(fleet.times).toEqual(minutes(begun, fleet.clock.now()))
  })

  it('runs again what was paused for longer than its ttl', async () => {
    const fleet = new Fleet()
    const { leasehold } = await fleet.open('a')
    const times: number[] = []
    const paused = ({ time }: { time: Date }) => {
      times.push(time.getTime())
      if (times.length === 1) fleet.clock.stall(5000)
    }
    await leasehold.cron('paused', { every: '1m' }, paused, { ttl: '2s' })
    await fleet.clock.advance(MINUTE + 10_000)
    expect(times).toEqual([times[0], times[0]])
  })

  it('leaves out what is later than catchUp, and reports it', async () => {
    const fleet = new Fleet()
    const a = await fleet.open('a')
    await fleet.clock.advance(MINUTE)
    await a.leasehold.close()
    await fleet.clock.advance(10 * MINUTE)
    const ran = fleet.runs.length
    await fleet.open('b', { catchUp: '2m' })
    await fleet.clock.advance(100)
    expect(fleet.runs.length - ran).toBe(2)
    expect(fleet.events).toContain('left-out')
  })

  it('goes on after a run that failed, and reports it', async () => {
    const fleet = new Fleet()
    const { leasehold } = await fleet.open('a')
    const seen: string[] = []
    leasehold.on('recipe-event', ({ event, detail }) => seen.push(`${event}: ${detail}`))
    let runs = 0
    await leasehold.cron('broken', { every: '1m' }, () => {
      runs++
      throw new Error('disk full')
    })
    await fleet.clock.advance(3 * MINUTE + 100)
    expect(runs).toBe(3)
    expect(seen.filter((it) => it.startsWith('failed'))).toHaveLength(3)
    expect(seen.find((it) => it.startsWith('failed'))).toMatch(/disk full/)
  })

  it('repeats a run that cannot be recorded less and less often', async () => {
    const fleet = new Fleet()
    const { link } = await fleet.open('a')
    await fleet.clock.advance(untilNextMinute(fleet.clock.now()) - 1)
    link.fault = (call) =>
      call === 'grant' ? { error: new LeaseholdError('limit-exceeded', 'full') } : undefined
    await fleet.clock.advance(MINUTE / 2)
    expect(fleet.runs.length).toBeGreaterThan(0)
    expect(fleet.runs.length).toBeLessThan(20)
    link.fault = () => undefined
    await fleet.clock.advance(MINUTE)
    expect(new Set(fleet.times).size).toBe(2)
  })

  it('runs what is due one after the other if a run takes longer than the schedule', async () => {
    const fleet = new Fleet()
    fleet.takes = 90_000
    const begun = fleet.clock.now()
    await fleet.open('a')
    await fleet.clock.advance(10 * MINUTE)
    expect(fleet.times).toEqual(minutes(begun, fleet.clock.now()).slice(0, fleet.runs.length))
    expect(fleet.runs.length).toBeGreaterThan(5)
  })

  it('neither leaves out nor doubles a run, whichever processes die between runs', async () => {
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.record({ wait: fc.integer({ min: 1, max: 4 * MINUTE }) }) },
      fc.record({ open: fc.constant(true) }),
      fc.record({ kill: fc.nat(3) }),
      fc.record({ close: fc.nat(3) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
        const fleet = new Fleet()
        const begun = fleet.clock.now()
        const members = [await fleet.open('m0')]
        await fleet.clock.advance(100)
        for (const each of steps) {
          if ('wait' in each) await fleet.clock.advance(each.wait)
          else if ('open' in each) members.push(await fleet.open(`m${members.length}`))
          else if ('kill' in each) members[each.kill % members.length]!.link.freeze()
          else void members[each.close % members.length]!.job.close()
        }
        await fleet.open('last')
        await fleet.clock.advance(MINUTE)
        expect(fleet.times).toEqual(minutes(begun, fleet.clock.now()))
      }),
      { numRuns: 60 },
    )
  })
})

describe('a schedule', () => {
  it('may be a cron expression with a time zone', async () => {
    const fleet = new Fleet()
    const { job } = await fleet.open('a', {}, { cron: '0 3 * * *', timeZone: 'America/New_York' })
    await fleet.clock.advance(100)
    const next = job.next!
    expect(next.getTime()).toBeGreaterThan(fleet.clock.now())
    expect(next.toLocaleTimeString('en-GB', { timeZone: 'America/New_York' })).toBe('03:00:00')
  })

  it('may be a function, and ends when that returns nothing', async () => {
    const fleet = new Fleet()
    const only = new Date(fleet.clock.now() + 5000)
    await fleet.open('a', {}, { next: (after: Date) => (after < only ? only : undefined) })
    await fleet.clock.advance(60 * MINUTE)
    expect(fleet.times).toEqual([only.toISOString()])
  })

  it.each([
    ['a wrong expression', '0 3 * *', /cron expression is "0 3 \* \* ?\*?"/],
    ['an unknown time zone', { cron: '0 3 * * *', timeZone: 'Mars/Base' }, /Mars\/Base/],
    ['too short a time', { every: '1ms' }, /every is "1ms": it must be at least 100ms/],
    ['no schedule', {}, /give a cron expression such as '0 3 \* \* \*'/],
  ] as const)('is refused if it is %s', async (_what, schedule, message) => {
    const fleet = new Fleet()
    await expect(fleet.open('a', {}, schedule as CronSchedule)).rejects.toThrow(message)
  })
})
