import type { Clock, LeaseholdError } from '../../port/index.ts'

/** The result, or this error if it takes too long: a library without a connection waits forever. */
export function withTimeout<Done>(
  done: Promise<Done>,
  clock: Clock,
  ms: number,
  late: () => LeaseholdError,
): Promise<Done> {
  return new Promise((resolve, reject) => {
    const timer = clock.timer(clock.now() + ms, () => reject(late()))
    done.then(resolve, reject).finally(() => timer.cancel())
  })
}
