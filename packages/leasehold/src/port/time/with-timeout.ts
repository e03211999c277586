import type { Clock } from './clock.ts'

/**
 * The promise, or a rejection with `late()` if it is not settled by the deadline. Keeps the process
 * running until then, unless `keepAlive` is false.
 */
export function withTimeout<Result>(
  clock: Clock,
  deadline: number,
  promise: Promise<Result>,
  late: () => Error,
  keepAlive = true,
): Promise<Result> {
  if (deadline === Infinity) return promise
  return new Promise((resolve, reject) => {
    const timer = clock.timer(deadline, () => reject(late()), keepAlive)
    promise.then(resolve, reject).finally(() => timer.cancel())
  })
}
