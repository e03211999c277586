import type { Client, HoldOptions } from '../../client/index.ts'
import { LeaseholdError, type Token } from '../../port/index.ts'
import { sleep } from '../sleep.ts'
import { candidateOf, type ElectionKeys, type Leader, leaderOf } from './candidate-queue.ts'

/**
 * The result of a hand-over:
 *
 * - `handed-over`: the successor leads.
 * - `not-campaigning`: no candidate has that name. Nothing was changed, and the term continues.
 * - `passed-on`: the term is over and another leads, because the successor left the queue.
 * - `unconfirmed`: the term is over, but nobody was seen to lead within the time limit.
 */
export type HandOver =
  | { readonly outcome: 'handed-over' | 'passed-on'; readonly leader: Leader }
  | { readonly outcome: 'not-campaigning' | 'unconfirmed'; readonly leader: undefined }

export interface Succession {
  /** The number of the term that is handed over. */
  readonly from: Token
  readonly to: string
  /** In milliseconds. */
  readonly timeout: number
  /** Ends the term. Rejects if it is already over. */
  stepDown(): Promise<void>
}

/** Candidates beyond this number are ignored. */
const QUEUE_MAX = 1000

export async function readQueue(client: Client, keys: ElectionKeys) {
  const { claims } = await client.store.read({ key: keys.queue, limit: QUEUE_MAX })
  return claims
}

/**
 * Names the successor on a separate key, steps down, and removes the name when somebody leads.
 *
 * The name is there before the term ends, so the next candidate at the front reads it. It has a
 * lease like any claim: if this process dies meanwhile, the name expires.
 */
export async function succession(
  client: Client,
  keys: ElectionKeys,
  timing: HoldOptions,
  { from, to, timeout, stepDown }: Succession,
): Promise<HandOver> {
  const queue = (await readQueue(client, keys)).map(candidateOf)
  if (!queue.some(({ candidate }) => candidate === to)) {
    return { outcome: 'not-campaigning', leader: undefined }
  }
  const claim = { key: keys.successor, value: JSON.stringify({ to, from }) }
  // An earlier hand-over of this election may not have removed its name yet.
  const successorHold = await client.hold([claim], { ...timing, wait: timeout })
  let wake = () => {}
  const view = client.view(keys.prefix, () => wake())
  const next = () => {
    const leader = leaderOf(view.places(keys.queue), view.age())
    return leader !== undefined && leader.term > from ? leader : undefined
  }
  try {
    await stepDown()
    const waitForLeader = (done: () => void) => {
      wake = () => {
        if (next() !== undefined) done()
      }
      wake()
    }
    await sleep(client, timeout, undefined, waitForLeader)
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
    `this candidate does not lead "${keys.name}", and only the leader can do that`,
  )
}
