import type { Client } from '../client/index.ts'
import type { Timer } from '../port/index.ts'

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
