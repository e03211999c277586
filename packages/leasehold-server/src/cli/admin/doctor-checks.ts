import { constants } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { uptime } from 'node:os'
import { join, resolve } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { type LeaseStore, systemClock, systemRandom, systemReason } from 'leasehold/port'

export interface Finding {
  readonly check: string
  readonly state: 'good' | 'look' | 'bad'
  readonly found: string
  readonly advice: string
}

const OBSERVED_MS = 1000
/** The resolution of the machine's uptime, and a bit more. */
const UPTIME_STEP_MS = 50
const SYNCS = 50
const TRIPS = 50
const BLOCK = Buffer.alloc(512)

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => systemClock.timer(systemClock.now() + ms, resolve, true))
}

/** Whether the clock runs evenly, and whether a suspended machine would be noticed. */
export async function checkClock(): Promise<Finding> {
  const from = { clock: systemClock.now(), uptime: uptime() * 1000 }
  await pause(OBSERVED_MS)
  const passed = { clock: systemClock.now() - from.clock, uptime: uptime() * 1000 - from.uptime }
  const asleep = systemClock.asleep()
  const apart = Math.abs(passed.clock - passed.uptime - asleep)
  // Some systems report the uptime in whole seconds.
  const isCoarse = apart > UPTIME_STEP_MS
  return {
    check: 'clock',
    state: apart > OBSERVED_MS ? 'bad' : isCoarse ? 'look' : 'good',
    found: `the clocks drifted by ${apart.toFixed(1)} ms in 1 s; asleep for ${asleep.toFixed(0)} ms`,
    advice: isCoarse
      ? 'a suspended machine may be noticed late: send the fencing token with every write'
      : '',
  }
}

/** How late timers fire in a process on this machine. */
export async function checkEventLoop(): Promise<Finding> {
  const delays = monitorEventLoopDelay({ resolution: 5 })
  delays.enable()
  await pause(OBSERVED_MS)
  delays.disable()
  const [usual, worst] = [delays.percentile(50) / 1e6 - 5, delays.max / 1e6 - 5]
  const isLate = worst > 100
  return {
    check: 'event loop',
    state: isLate ? 'look' : 'good',
    found: `late by ${ms(usual)}, at worst ${ms(worst)}`,
    advice: isLate ? `the machine is busy: use ttls of ${ms(10 * worst)} or more` : '',
  }
}

/** How long a durable write takes; a file store waits for one before every answer. */
export async function checkDisk(folder: string): Promise<Finding> {
  const path = join(folder, `leasehold-doctor-${systemRandom.id()}`)
  const check = 'disk'
  try {
    const sync = process.platform === 'linux' ? constants.O_DSYNC : 0
    const file = await open(path, constants.O_CREAT | constants.O_EXCL | constants.O_RDWR | sync)
    try {
      await file.write(Buffer.alloc(SYNCS * BLOCK.length))
      await file.sync()
      const times = await timed(SYNCS, async (at) => {
        await file.write(BLOCK, 0, BLOCK.length, at * BLOCK.length)
        if (sync === 0) await file.datasync()
      })
      return diskFinding(resolve(folder), times)
    } finally {
      await file.close()
      await rm(path, { force: true })
    }
  } catch (error) {
    const found = `cannot write to ${resolve(folder)}: ${systemReason(error)}`
    return { check, state: 'bad', found, advice: 'use the data folder as --folder' }
  }
}

function diskFinding(folder: string, { usual, worst }: Times): Finding {
  const found = `a durable write in ${folder} takes ${ms(usual)}, at worst ${ms(worst)}`
  const check = 'disk'
  if (usual < 0.02) {
    const advice = 'suspiciously fast: it may be in memory, or a disk that ignores syncs'
    return { check, state: 'look', found, advice }
  }
  if (usual <= 20) return { check, state: 'good', found, advice: '' }
  const advice = 'slow, and every answer waits for one. Use a local disk, best a dedicated one'
  return { check, state: 'look', found, advice }
}

/** How long the store takes to answer a call that changes nothing. */
export async function checkRoundTrip(store: LeaseStore): Promise<Finding> {
  const { usual, worst } = await timed(TRIPS, async () => {
    // No lease has this id. Without any id, a remote store answers by itself.
    await store.renew(['doctor'])
  })
  const isSlow = worst > 200
  return {
    check: 'round trip',
    state: isSlow ? 'look' : 'good',
    found: `${ms(usual)}, at worst ${ms(worst)}`,
    advice: isSlow ? `use ttls of ${ms(10 * worst)} or more` : '',
  }
}

interface Times {
  readonly usual: number
  readonly worst: number
}

async function timed(count: number, act: (at: number) => Promise<void>): Promise<Times> {
  const times: number[] = []
  for (let at = 0; at < count; at++) {
    const begun = systemClock.now()
    await act(at)
    times.push(systemClock.now() - begun)
  }
  times.sort((a, b) => a - b)
  return { usual: times[count >> 1]!, worst: times.at(-1)! }
}

function ms(value: number): string {
  return `${Math.max(0, value).toFixed(value < 10 ? 2 : 0)} ms`
}
