import {
  type Clock,
  type Duration,
  invalid,
  positive,
  type Random,
  show,
  systemClock,
  systemRandom,
} from '../../port/index.ts'
import { checkLogOptions, type Engine } from './option-names.ts'

/** The options that every log has. */
export interface LogOptions {
  /** How long a call may take. 5 s if not given. */
  readonly timeout?: Duration | undefined
  readonly clock?: Clock | undefined
  readonly random?: Random | undefined
}

export interface LogSettings {
  readonly timeout: number
  readonly clock: Clock
  readonly random: Random
}

export function logSettings(engine: Engine, options: LogOptions): LogSettings {
  checkLogOptions(engine, options)
  const { timeout, clock, random } = options
  return {
    timeout: positive(timeout ?? 5000, 'timeout'),
    clock: clock ?? systemClock,
    random: random ?? systemRandom,
  }
}

/** Checks a name that is passed to the engine unchanged. */
export function checkName(what: string, name: unknown, allowed: RegExp, words: string): string {
  if (typeof name === 'string' && allowed.test(name)) return name
  throw invalid(`${what} is ${show(name)}: it must be ${words}`)
}
