// Run it: npm run build && node examples/dist/gpu-pool.js
import { Leasehold, type Permit, type PreemptionNotice, type TakeOptions } from 'leasehold'
import { testStore } from 'leasehold/testing'

/**
 * Four GPUs, three tenants, one working day in a second: the clock is that of the test store. `night`
 * has everything at first, because nobody else wants it. Then `research` (weight 2) and `vision`
 * (weight 1) come. Each tenant ends up with what it deserves, and no process assigns anything.
 */
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const { store, clock } = testStore()
const morning = clock.now()

const leasehold = await Leasehold.open(store, { clock, holder: 'example' })
const pool = leasehold.pool('gpu', {
  resources: [
    { name: 'a100-0', model: 'A100', memory: 40 },
    { name: 'a100-1', model: 'A100', memory: 40 },
    { name: 'h100-0', model: 'H100', memory: 80 },
    { name: 'h100-1', model: 'H100', memory: 80 },
  ],
  tenants: { research: { weight: 2 }, vision: { weight: 1 }, night: { weight: 1 } },
  notice: '10m',
  maxHold: '12h',
})

const used: Record<string, number> = { research: 0, vision: 0, night: 0 }

function say(tenant: string, text: string): void {
  const minutes = Math.round((clock.now() - morning) / MINUTE) + 8 * 60
  const time = `${String(Math.floor(minutes / 60)).padStart(2, '0')}:${String(minutes % 60).padStart(2, '0')}`
  console.log(`${time}  ${tenant.padEnd(8)}  ${text}`)
}

/** One job: waits, works for its time or until the permit is asked back, and releases it. */
async function job(options: TakeOptions, hours: number): Promise<void> {
  const { tenant, kind } = options
  await using permit = await pool.take({ ttl: `${hours}h`, ...options })
  say(tenant, `${kind} runs on ${permit.resources.join(' and ')}, token ${permit.token}`)
  const began = clock.now()
  const asked = await workOrNotice(permit, hours * HOUR * 0.9)
  used[tenant]! += permit.resources.length * (clock.now() - began)
  say(tenant, asked ? `${kind} saves its work and goes: ${asked} needs the GPU` : `${kind} is done`)
}

function workOrNotice(permit: Permit, ms: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const timer = clock.timer(clock.now() + ms, () => resolve(undefined))
    permit.notice.addEventListener('abort', () => {
      timer.cancel()
      const { tenant } = permit.notice.reason as PreemptionNotice
      // Half of the notice is enough to write a checkpoint.
      clock.timer(clock.now() + 5 * MINUTE, () => resolve(tenant))
    })
  })
}

async function show(): Promise<void> {
  const { resources, queue } = await pool.status()
  const held = resources.map(({ name, permits }) => `${name} ${permits[0]?.tenant ?? '-'}`)
  say('pool', held.join(' | '))
  for (const { tenant, kind, count, forecast } of queue) {
    const hours = ((forecast?.wait ?? 0) / HOUR).toFixed(1)
    say(
      'pool',
      `  waiting: ${tenant} ${kind}, ${count} GPU, in about ${hours} h (${forecast?.basis})`,
    )
  }
}

const jobs: Promise<void>[] = []
const start = (options: TakeOptions, hours: number) => void jobs.push(job(options, hours))

for (let i = 0; i < 6; i++) start({ tenant: 'night', kind: `batch-${i}`, preemptible: true }, 3)
await clock.advance(30 * MINUTE)
start({ tenant: 'vision', kind: 'label' }, 1)
await clock.advance(MINUTE)
for (let i = 0; i < 3; i++) start({ tenant: 'research', kind: `tune-${i}` }, 2)
await clock.advance(MINUTE)
start({ tenant: 'research', kind: 'train', where: 'memory >= 80', count: 2, priority: 5 }, 4)
await clock.advance(MINUTE)
await show()
await clock.advance(10 * HOUR)
await Promise.all(jobs)

const sum = Object.values(used).reduce((total, ms) => total + ms, 0)
for (const [tenant, ms] of Object.entries(used)) {
  const share = Math.round((100 * ms) / sum)
  console.log(`${tenant.padEnd(8)}  ${(ms / HOUR).toFixed(1).padStart(5)} GPU hours  ${share} %`)
}
await leasehold.close()
await store.close()
