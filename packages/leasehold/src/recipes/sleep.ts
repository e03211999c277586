import type { Client } from '../client/index.ts'
import type { Timer } from '../port/index.ts'

/**
 * Waits for `ms`, or until `settle`'s callback is called. Rejects at once if the client is closed
 * or the signal is aborted. Keeps the process running.
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
 * Settles like the promise, or rejects with the reason of the first aborted signal. Removes its
 * listeners from the signals, which may live long; `AbortSignal.any` leaks them in Node 20.
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
 * Calls `aborted` with the reason of the first signal that is aborted. Returns a function that
 * stops listening. The `signal` option of `addEventListener` is not reliable here: Node 20 keeps
 * one listener per target alive and lets the garbage collector take the others.
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
