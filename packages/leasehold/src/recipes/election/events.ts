import type { Client, RecipeEvents } from '../../client/index.ts'
import type { Token } from '../../port/index.ts'
import type { ElectionKeys } from './candidate-queue.ts'

/**
 * What an election tells, as `news` of the recipe `election`:
 *
 * - `campaigning`: a candidate takes its keys in line.
 * - `stepped-behind`: it was at the front, and made room for one who is preferred.
 * - `elected`: it leads; the token is the number of its term.
 * - `asked`: its work is asked to end, by itself or for a preferred candidate.
 * - `resigned`, `handed-over`, `preempted`: the term is over, and it gave it up.
 * - `lost`: the term is over, and it was taken or could not be kept.
 * - `retrying`: the store failed or was lost; it tries again after a while.
 */
export type ElectionEvent = RecipeEvents['election']

const LEVELS: Partial<Record<ElectionEvent, 'debug' | 'warn'>> = {
  campaigning: 'debug',
  lost: 'warn',
  retrying: 'warn',
}

export function emitEvent(
  client: Client,
  keys: ElectionKeys,
  event: ElectionEvent,
  detail: string,
  token?: Token,
): void {
  client.emit({
    recipe: 'election',
    event,
    key: keys.queue,
    token,
    detail,
    level: LEVELS[event],
  })
}
