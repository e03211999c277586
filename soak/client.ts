import { Leasehold } from 'leasehold'
import { fileFence } from 'leasehold/fence'
import { remoteStore } from 'leasehold/remote'
import { answerSamples } from './sample.ts'
import { pause, Tally, WORK_NAMES } from './work.ts'

/**
 * A process that uses every recipe, one after the other. A `steady` process lives as long as the
 * soak, and opens and closes a second client repeatedly. A `brief` one works for a few seconds.
 */
const [, , kind, url, fenceFolder] = process.argv
const STEADY_PAUSE_MS = 100
const BRIEF_MS = 6000
const VISITOR_WORKS = 6

const tally = new Tally()
const fence = await fileFence(fenceFolder!)
const checked = `${url}/healthz`
answerSamples()
process.on('message', () => {
  for (const [error, count] of tally.errors) process.stderr.write(`${count} × ${error}\n`)
  tally.errors.clear()
})

async function open(): Promise<Leasehold & { end(): Promise<void> }> {
  const store = await remoteStore(url!, { tied: Math.random() < 0.5 })
  const leasehold = await Leasehold.open(store)
  const end = async () => {
    await leasehold.close()
    await store.close()
  }
  return Object.assign(leasehold, { end })
}

/** Opens a client, does some work with it, and closes it. */
function visit(works: number): Promise<void> {
  return tally.attempt('visit', async () => {
    const leasehold = await open()
    try {
      for (let work = 0; work < works; work++) {
        await tally.run(pick(), { leasehold, fence, checked, random: Math.random })
      }
      await tally.run('pool', { leasehold, fence, checked, random: Math.random })
    } finally {
      await leasehold.end()
    }
  })
}

function pick(): string {
  return WORK_NAMES[Math.floor(Math.random() * WORK_NAMES.length)]!
}

process.send!({ ready: true })
if (kind === 'brief') {
  const end = performance.now() + BRIEF_MS
  while (performance.now() < end) await visit(VISITOR_WORKS)
  process.disconnect()
} else {
  const leasehold = await open()
  const stay = async () => {
    for (;;) {
      await tally.run(pick(), { leasehold, fence, checked, random: Math.random })
      await pause(STEADY_PAUSE_MS)
    }
  }
  const visits = async () => {
    for (;;) {
      await visit(VISITOR_WORKS)
      await pause(2000)
    }
  }
  await Promise.all([stay(), stay(), visits()])
}
