import {
  checkNames,
  type Duration,
  invalid,
  knownNames,
  LeaseholdError,
  milliseconds,
  show,
} from '../../port/index.ts'
import { objectOf, stringOf } from '../arguments.ts'

/**
 * When a job is due. All processes must give the same schedule.
 *
 * - A cron expression, such as `'0 3 * * *'`: every day at 3. It needs the package `croner`. In the
 *   time zone of this process, or in the given one, such as `'Europe/Berlin'`.
 * - `every`: at the multiples of a duration since the Unix epoch, so that all processes agree.
 * - `next`: a function that returns the first time after a given one, or `undefined` for never.
 */
export type CronSchedule =
  | string
  | { readonly cron: string; readonly timeZone?: string | undefined }
  | { readonly every: Duration }
  | { readonly next: (after: Date) => Date | undefined }

/** Returns the first time after the given one, in milliseconds; `undefined` for never. */
export type NextTime = (after: number) => number | undefined

const SCHEDULE_NAMES = knownNames<{ cron: 1; timeZone: 1; every: 1; next: 1 }>({
  cron: true,
  timeZone: true,
  every: true,
  next: true,
})
const EVERY_MIN_MS = 100
const EXPRESSION_LENGTH_MAX = 256

export async function nextTimeOf(schedule: CronSchedule): Promise<NextTime> {
  if (typeof schedule === 'string') return cronTimes(schedule, undefined)
  checkNames('the schedule', objectOf('the schedule', schedule), SCHEDULE_NAMES)
  if ('every' in schedule) return everyTimes(schedule.every)
  if ('cron' in schedule) return cronTimes(schedule.cron, schedule.timeZone)
  if (typeof schedule.next === 'function') return givenTimes(schedule.next)
  throw invalid(
    `the schedule is ${show(schedule)}: give a cron expression such as '0 3 * * *', or { every: '5m' }, or { next }`,
  )
}

function everyTimes(every: Duration): NextTime {
  const ms = milliseconds(every, 'every')
  if (ms < EVERY_MIN_MS || ms === Infinity) {
    throw invalid(`every is ${show(every)}: it must be at least ${EVERY_MIN_MS}ms, and finite`)
  }
  return (after) => (Math.floor(after / ms) + 1) * ms
}

async function cronTimes(expression: string, timeZone: string | undefined): Promise<NextTime> {
  stringOf('the cron expression', expression, EXPRESSION_LENGTH_MAX)
  const { Cron } = await croner()
  try {
    const cron = new Cron(expression, { paused: true, ...(timeZone && { timezone: timeZone }) })
    // An unknown time zone only shows when it is used.
    cron.nextRun()
    return givenTimes((after) => cron.nextRun(after) ?? undefined)
  } catch (error) {
    const zone = timeZone === undefined ? '' : ` in the time zone ${show(timeZone)}`
    throw invalid(
      `the cron expression is ${show(expression)}${zone}, which is not valid (${(error as Error).message}): give minute, hour, day, month and weekday, such as '0 3 * * *'`,
    )
  }
}

/** Not a dependency of this package, because most users need no cron expressions. */
async function croner(): Promise<typeof import('croner')> {
  try {
    return await import('croner')
  } catch (error) {
    throw new LeaseholdError(
      'unsupported',
      `cron expressions need the package croner: run npm install croner, or give { every: '5m' } or { next }`,
      { cause: error },
    )
  }
}

function givenTimes(next: (after: Date) => Date | undefined): NextTime {
  return (after) => {
    const time = next(new Date(after))
    if (time === undefined) return undefined
    if (time instanceof Date && time.getTime() > after) return time.getTime()
    throw invalid(
      `next returned ${show(time)} for ${new Date(after).toISOString()}: it must be a later Date, or undefined for never`,
    )
  }
}
