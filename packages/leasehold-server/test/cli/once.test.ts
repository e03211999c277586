import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runLeasehold, startLeasehold } from '../setup/run-leasehold.ts'
import { Place } from '../setup/server-process.ts'

const place = new Place()
let env: Record<string, string>
beforeAll(async () => {
  env = { LEASEHOLD_URL: (await place.server('memory:')).url }
})
afterAll(() => place.clean())

describe('leasehold once', () => {
  const once = (...args: string[]) => runLeasehold(['once', ...args], { env })

  it('runs the command once, and says later who has done it', async () => {
    const first = await once('report/1', '--holder', 'ada', '--', 'echo', 'hi')
    expect(first).toMatchObject({ code: 0, stdout: 'hi\n', stderr: '' })
    const second = await once('report/1', '--', 'echo', 'hi')
    expect(second).toMatchObject({ code: 0, stdout: '' })
    expect(second.stderr).toMatch(/report\/1 was done by ada, 20.*--forget lets it run again/)
  })

  it('does not remember a command that failed, and passes its exit code on', async () => {
    expect(await once('report/2', '--', 'sh', '-c', 'exit 7')).toMatchObject({ code: 7 })
    expect(await once('report/2', '--', 'echo', 'hi')).toMatchObject({ code: 0, stdout: 'hi\n' })
  })

  it('runs again after --forget', async () => {
    await once('report/3', '--', 'true')
    expect((await once('report/3', '--forget')).stderr).toMatch(/forgotten, and can run again/)
    expect((await once('report/3', '--forget')).stderr).toMatch(/was not done/)
    expect((await once('report/3', '--', 'echo', 'hi')).stdout).toBe('hi\n')
  })
})

describe('leasehold cron', () => {
  const cron = (...args: string[]) => runLeasehold(['cron', ...args], { env })

  it('runs on one machine, and on the next when that one is killed, each time once', async () => {
    const file = join(await place.folder(), 'times')
    appendFileSync(file, '')
    const times = () => readFileSync(file, 'utf8').split('\n').slice(0, -1)
    const start = (holder: string) => {
      const job = ['cron', 'tick', '--every', '500ms', '--ttl', '2s', '--holder', holder]
      return startLeasehold([...job, '--', 'sh', '-c', `echo $LEASEHOLD_TIME >> ${file}`], { env })
    }
    const [first, second] = [start('first'), start('second')]
    await expect.poll(() => times().length).toBeGreaterThan(2)
    first.child.kill('SIGKILL')
    const before = times().length
    await expect.poll(() => times().length).toBeGreaterThan(before + 8)
    second.child.kill('SIGTERM')
    await second.ended
    const seen = times().map((time) => Date.parse(time))
    // The kill may come in the middle of a run, which is then run again.
    const gaps = [...new Set(seen)].map((time, i, all) => time - (all[i - 1] ?? time - 500))
    expect(new Set(gaps)).toEqual(new Set([500]))
    expect(seen.length - new Set(seen).size).toBeLessThanOrEqual(1)
  })

  it.each([
    ['no schedule', [], /the schedule is missing: give either --at/],
    ['two schedules', ['--every', '5m', '--at', '0 3 * * *'], /there are two schedules/],
    ['a wrong expression', ['--at', '1 2 3'], /the cron expression is "1 2 3"/],
  ])('refuses %s', async (_what, schedule, message) => {
    const ran = await cron('tick', ...schedule, '--', 'true')
    expect(ran).toMatchObject({ code: 125 })
    expect(ran.stderr).toMatch(message)
  })
})
