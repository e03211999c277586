import type { Client, RecipeEvents } from '../../client/index.ts'
import type { Token } from '../../port/index.ts'
import type { ElectionKeys } from './candidate-queue.ts'

/**
 * The events of an election, reported as `recipe-event` of the recipe `election`:
 *
 * - `campaigning`: a candidate joins the queue.
 * - `stepped-behind`: it was at the front, and let a preferred candidate pass.
 * - `elected`: it leads; the token is the number of its term.
 * - `asked`: its work is asked to end, by itself or for a preferred candidate.
 * - `resigned`, `handed-over`, `preempted`: it gave up its term.
 * - `lost`: its term was taken away or could not be kept.
 * - `retrying`: the store failed; it tries again after a pause.
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
  const level = LEVELS[event]
  client.emit({ recipe: 'election', event, key: keys.queue, token, detail, level })
}
