import type { Client, HoldOptions } from '../../client/index.ts'
import { LeaseholdError, type Token } from '../../port/index.ts'
import { sleep } from '../sleep.ts'
import { candidateOf, type ElectionKeys, type Leader, leaderOf } from './candidate-queue.ts'

/**
 * What came of a hand-over:
 *
 * - `handed-over`: the successor leads.
 * - `not-campaigning`: nobody of that name is in line. Nothing was changed, and the term goes on.
 * - `passed-on`: the term is over and another leads, because the successor left the line meanwhile.
 * - `unconfirmed`: the term is over, but within the limit nobody was seen to lead.
 */
export type HandOver =
  | { readonly outcome: 'handed-over' | 'passed-on'; readonly leader: Leader }
  | { readonly outcome: 'not-campaigning' | 'unconfirmed'; readonly leader: undefined }

export interface Succession {
  /** The number of the term that is handed over. */
  readonly from: Token
  readonly to: string
  /** In milliseconds. */
  readonly within: number
  /** Ends the term. Rejected where it is over already. */
  stepDown(): Promise<void>
}

/** More candidates than this in one line are not looked at. */
const QUEUE_MAX = 1000

export async function readQueue(client: Client, keys: ElectionKeys) {
  const { claims } = await client.store.read({ key: keys.queue, limit: QUEUE_MAX })
  return claims
}

/**
 * Names the successor on a key of its own, steps down, and takes the name back when somebody leads.
 *
 * The name stands there before the term is given up, so whoever then comes to the front reads it.
 * It is held like anything else: if this process dies meanwhile it vanishes with its lease, and the
 * line goes on as if nobody had been named.
 */
export async function succession(
  client: Client,
  keys: ElectionKeys,
  timing: HoldOptions,
  { from, to, within, stepDown }: Succession,
): Promise<HandOver> {
  const queue = (await readQueue(client, keys)).map(candidateOf)
  if (!queue.some(({ candidate }) => candidate === to)) {
    return { outcome: 'not-campaigning', leader: undefined }
  }
  const claim = { key: keys.successor, value: JSON.stringify({ to, from }) }
  // Another hand-over of this election may not have taken its name back yet.
  const successorHold = await client.hold([claim], { ...timing, wait: within })
  let wake = () => {}
  const view = client.view(keys.prefix, () => wake())
  const next = () => {
    const leader = leaderOf(view.places(keys.queue), view.age())
    return leader !== undefined && leader.term > from ? leader : undefined
  }
  try {
    await stepDown()
    const lookUntilThere = (done: () => void) => {
      wake = () => {
        if (next() !== undefined) done()
      }
      wake()
    }
    await sleep(client, within, undefined, lookUntilThere)
    const leader = next()
    if (leader === undefined) return { outcome: 'unconfirmed', leader }
    return { outcome: leader.candidate === to ? 'handed-over' : 'passed-on', leader }
  } finally {
    view.close()
    await successorHold[Symbol.asyncDispose]()
  }
}

export function notLeading(keys: ElectionKeys): LeaseholdError {
  return new LeaseholdError(
    'claim-not-found',
    `this candidate does not lead "${keys.name}": only the leader can do that`,
  )
}
