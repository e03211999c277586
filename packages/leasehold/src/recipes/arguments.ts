import { checkNames, type Duration, invalid, milliseconds, show } from '../port/index.ts'

/**
 * Checks for the arguments of recipes. Each check returns the value to use, or throws an error that
 * says what the value is and what is allowed.
 */

export const NAME_MAX = 128
const LIST_MAX = 64
const CONTROL = /\p{Cc}/u

/** A name that becomes one part of a key unchanged. A slash would split it into two parts. */
export function keyPart(name: string, value: unknown): string {
  const part = stringOf(name, value, NAME_MAX)
  if (!/[\s/]/.test(part)) return part
  throw invalid(`${name} is ${show(part)}: it must not contain a slash or a space`)
}

/** Encodes any string of the user as one part of a key. */
export function encodedPart(name: string, value: unknown): string {
  if (typeof value === 'string' && value !== '' && value.isWellFormed()) {
    return encodeURIComponent(value)
  }
  throw invalid(`${name} is ${show(value)}: it must be a string that is not empty`)
}

export function stringOf(name: string, value: unknown, max: number): string {
  if (typeof value !== 'string' || value === '') {
    throw invalid(`${name} is ${show(value)}: give a string of 1 to ${max} characters`)
  }
  if (value.length > max) {
    throw invalid(`${name} has ${value.length} characters: at most ${max} are allowed`)
  }
  if (CONTROL.test(value) || !value.isWellFormed()) {
    throw invalid(`${name} is ${show(value)}: use printable characters only`)
  }
  return value
}

/** Returns the names without duplicates, in their original order. */
export function namesOf(name: string, value: unknown): readonly string[] {
  if (value === undefined) return []
  if (!Array.isArray(value)) throw invalid(`${name} is ${show(value)}: give an array of strings`)
  if (value.length > LIST_MAX) {
    throw invalid(`${name} has ${value.length} entries: at most ${LIST_MAX} are allowed`)
  }
  return [...new Set(value.map((entry) => stringOf(`an entry of ${name}`, entry, NAME_MAX)))]
}

export function recordOf(
  name: string,
  value: unknown,
  max: number,
): Readonly<Record<string, string>> {
  if (value === undefined) return {}
  const entries = Object.entries(objectOf(name, value))
  if (entries.length > LIST_MAX) {
    throw invalid(`${name} has ${entries.length} entries: at most ${LIST_MAX} are allowed`)
  }
  // Built from entries, so that a name such as __proto__ is treated like any other name.
  return Object.fromEntries(
    entries.map(([key, content]) => [
      stringOf(`a name in ${name}`, key, NAME_MAX),
      content === '' ? '' : stringOf(`${name}.${key}`, content, max),
    ]),
  )
}

export function objectOf(name: string, value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Readonly<Record<string, unknown>>
  }
  throw invalid(`${name} is ${show(value)}: it must be an object`)
}

/** Options: an object with known names only. */
export function optionsOf<Options extends object>(
  where: string,
  options: Options,
  known: ReadonlySet<string>,
): Options {
  checkNames(where, objectOf('options', options), known)
  return options
}

/** Refuses `wait` in a call that never waits: the caller would believe that it does. */
export function refuseWait(
  call: string,
  waitingCall: string,
  options: { readonly wait?: Duration | undefined } | undefined,
): void {
  const wait = options?.wait
  if (wait === undefined || milliseconds(wait, 'wait') === 0) return
  throw invalid(
    `wait is ${show(wait)}, and ${call} never waits: use ${waitingCall}(…, { wait: ${show(wait)} }) instead, or 'timeout' to limit the call`,
  )
}

/** Checks the options of a call that waits: an object, with an AbortSignal if there is one. */
export function checkWaitOptions(
  where: string,
  options: { readonly signal?: AbortSignal | undefined },
  known: ReadonlySet<string>,
): void {
  const { signal } = optionsOf(where, options, known)
  if (signal === undefined || (typeof signal === 'object' && signal && 'aborted' in signal)) return
  throw invalid(`signal is ${show(signal)}: it must be an AbortSignal`)
}

export function functionOf<Given>(name: string, value: Given): Given {
  if (typeof value === 'function') return value
  throw invalid(`${name} is ${show(value)}: give a function`)
}

export function numberOf(name: string, value: unknown, min: number, max: number): number {
  if (typeof value === 'number' && value >= min && value <= max) return value
  throw invalid(`${name} is ${show(value)}: it must be a number from ${min} to ${max}`)
}

export function countOf(name: string, value: unknown, min: number, max: number): number {
  if (Number.isInteger(value)) return numberOf(name, value, min, max)
  throw invalid(`${name} is ${show(value)}: it must be an integer from ${min} to ${max}`)
}

/** A duration within the given limits, inclusive. The error message shows them as given. */
export function durationOf(name: string, value: unknown, min: Duration, max: Duration): number {
  const ms = milliseconds(value as Duration, name)
  if (ms >= milliseconds(min, name) && ms <= milliseconds(max, name)) return ms
  throw invalid(`${name} is ${show(value)}: it must be from ${min} to ${max}`)
}

export function oneOf<Choice extends string>(
  name: string,
  value: unknown,
  choices: readonly Choice[],
): Choice {
  if (choices.includes(value as Choice)) return value as Choice
  throw invalid(`${name} is ${show(value)}: it must be one of ${choices.map(show).join(', ')}`)
}
