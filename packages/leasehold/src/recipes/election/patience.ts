import type { Client } from '../../client/index.ts'
import { LeaseholdError, show, type Timer } from '../../port/index.ts'

const REST_MIN_MS = 100
const REST_MAX_MS = 5000

/** How long to rest after so many failures in a row: longer each time, but never long. */
export function restAfter(failures: number, client: Client): number {
  const longest = Math.min(REST_MIN_MS * 2 ** failures, REST_MAX_MS)
  return longest * (0.5 + 0.5 * client.random.next())
}

/**
 * Waits for `ms`, or until somebody calls what `settle` was given. Rejected at once where the client
 * is closed or the signal is aborted. Keeps the process running.
 */
export async function pause(
  client: Client,
  ms: number,
  signal?: AbortSignal,
  settle?: (done: () => void) => void,
): Promise<void> {
  const { clock, closing } = client
  const ending = signal === undefined ? closing : AbortSignal.any([closing, signal])
  let timer: Timer | undefined
  const over = new Promise<void>((resolve) => {
    if (ms < Infinity) timer = clock.timer(clock.now() + ms, resolve, true)
    settle?.(resolve)
  })
  try {
    await unlessAborted(ending, over)
  } finally {
    timer?.cancel()
  }
}

/** The promise, or the signal's reason, whichever comes first. */
export function unlessAborted<Result>(
  signal: AbortSignal,
  promise: Promise<Result>,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

export function invalid(message: string): LeaseholdError {
  return new LeaseholdError('invalid-argument', message)
}

export function checkValue(value: unknown): void {
  if (value === undefined || typeof value === 'string') return
  throw invalid(`value is ${show(value)}: it must be a text; write objects as JSON`)
}

/** The options of a call, which may carry a signal. */
export function checkOptions(options: { readonly signal?: AbortSignal | undefined }): void {
  if (typeof options !== 'object' || options === null) {
    throw invalid(`options is ${show(options)}: it must be an object`)
  }
  const { signal } = options
  if (signal === undefined || (typeof signal === 'object' && signal && 'aborted' in signal)) return
  throw invalid(`signal is ${show(signal)}: it must be an AbortSignal`)
}
