import type { Client } from '../client/index.ts'
import type { Timer } from '../port/index.ts'

/**
 * Waits for `ms`, or until somebody calls what `settle` was given. Rejected at once where the client
 * is closed or the signal is aborted. Keeps the process running.
 */
export async function sleep(
  client: Client,
  ms: number,
  signal?: AbortSignal,
  settle?: (done: () => void) => void,
): Promise<void> {
  const { clock, closing } = client
  let timer: Timer | undefined
  const over = new Promise<void>((resolve) => {
    if (ms < Infinity) timer = clock.timer(clock.now() + ms, resolve, true)
    settle?.(resolve)
  })
  try {
    await unlessAborted([closing, signal], over)
  } finally {
    timer?.cancel()
  }
}

/**
 * The promise, or the reason of one of the signals, whichever comes first. Leaves nothing behind at
 * the signals, which may live long; `AbortSignal.any` would, in Node 20.
 */
export function unlessAborted<Result>(
  signals: readonly (AbortSignal | undefined)[],
  promise: Promise<Result>,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const stop = onAbort(signals, reject)
    promise.then(resolve, reject).finally(stop)
  })
}

/**
 * Calls with the reason of the first of the signals that is aborted. The result stops listening: the
 * option `signal` of `addEventListener` would not always, since Node 20 keeps one listener of each
 * target from the garbage collector and forgets the others.
 */
export function onAbort(
  signals: readonly (AbortSignal | undefined)[],
  aborted: (reason: unknown) => void,
): () => void {
  const listening: (() => void)[] = []
  const stop = () => {
    for (const each of listening) each()
  }
  for (const signal of signals) {
    const listener = () => {
      stop()
      aborted(signal!.reason)
    }
    if (signal?.aborted) {
      listener()
      break
    }
    signal?.addEventListener('abort', listener)
    listening.push(() => signal?.removeEventListener('abort', listener))
  }
  return stop
}
