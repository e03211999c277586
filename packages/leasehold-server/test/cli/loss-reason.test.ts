import { Leasehold } from 'leasehold'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runLeasehold, startLeasehold } from '../setup/run-leasehold.ts'
import { Place, type ServerProcess } from '../setup/server-process.ts'

const place = new Place()
let server: ServerProcess
let env: Record<string, string>
beforeAll(async () => {
  server = await place.server('memory:')
  env = { LEASEHOLD_URL: server.url, USER: 'olga' }
})
afterAll(() => place.clean())

const SLEEP = ['--', 'sh', '-c', 'echo in; sleep 60 & wait']
const revoke = (prefix: string) =>
  runLeasehold(['revoke', '--prefix', prefix, '--why', 'disk full on A'], { env })

describe('the reason of a forced revocation', () => {
  it.each([
    ['elect', ['elect', 'scheduler'], 'election/scheduler/'],
    ['lock', ['lock', 'k'], 'k'],
    ['register', ['register', 'web', '--id', 'i-1'], 'services/web/'],
  ])('is printed by leasehold %s', async (_, args, prefix) => {
    const running = startLeasehold([...args, ...SLEEP], { env })
    await running.printed(/in\n/)
    expect(await revoke(prefix)).toMatchObject({ code: 0 })
    const { code, stderr } = await running.ended
    expect(code).toBe(123)
    expect(stderr).toMatch(/revoked by "olga by the command line", because "disk full on A"/)
  })

  it('is printed before leasehold elect --again leads again', async () => {
    const running = startLeasehold(['elect', 'again', '--again', ...SLEEP], { env })
    await running.printed(/in\n/)
    await revoke('election/again/')
    await running.printed(/in\nin\n/)
    expect(running.stderr).toMatch(/because "disk full on A"/)
    running.child.kill('SIGTERM')
    await running.ended
  })

  it('reaches the holder in a program, in both signals of a term', async () => {
    await using leasehold = await Leasehold.open(server.url)
    const term = await leasehold.election('program').campaign()
    const lost = new Promise((resolve) => term.signal.addEventListener('abort', resolve))
    await revoke('election/program/')
    await lost
    for (const { reason } of [term.signal, term.asked]) {
      expect(reason).toMatchObject({
        code: 'lost',
        reason: 'revoked',
        by: 'olga by the command line',
        why: 'disk full on A',
      })
    }
  })
})

describe('a candidate with a higher priority', () => {
  it('is named by the command that it stops', async () => {
    const running = startLeasehold(['elect', 'ranked', '--ttl', '6s', ...SLEEP], { env })
    await running.printed(/in\n/)
    const rival = ['elect', 'ranked', '--holder', 'rival', '--priority', '5', '--preempt']
    const next = runLeasehold([...rival, '--', 'true'], { env })
    const { code, stderr } = await running.ended
    expect(code).toBe(123)
    expect(stderr).toMatch(/term \d+ of "ranked" is over: "rival" has priority 5, above 0/)
    expect((await next).code).toBe(0)
  })
})
