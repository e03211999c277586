import type { Clock } from '../port/index.ts'

/** Does not wait for an answer for longer than this, whatever the log has promised. */
export function within<Answer>(
  clock: Clock,
  deadline: number,
  answer: Promise<Answer>,
): Promise<Answer> {
  if (deadline === Infinity) return answer
  return new Promise((resolve, reject) => {
    const timer = clock.timer(deadline, () => reject(new Error('no answer')), true)
    answer.then(resolve, reject).finally(() => timer.cancel())
  })
}
