import type { Busy, Claimed } from '../port/index.ts'
import { type Aim, Attempt, type Conflict, keysOf } from './attempt.ts'
import { storeError } from './call.ts'
import type { ClientCore } from './core.ts'
import { ClaimErrand } from './errands.ts'
import { type Hold, KeptHold } from './hold.ts'
import type { Keeper } from './keeper.ts'

/**
 * The short way, which nearly every lock on a store in this process takes: the lease is there and
 * the key is free, so the first answer is all there is to it, and it comes before anything could
 * time out or be aborted. Whatever else the answer says is left to an attempt, as if it had been
 * there from the start.
 */
export function claimAtOnce(core: ClientCore, aim: Aim, keeper: Keeper): Promise<Hold | Conflict> {
  const { claims, ifFree } = aim
  const epoch = keeper.beginCall()
  let answered: Promise<Claimed | Busy>
  try {
    answered = core.store.claim({ lease: keeper.lease, claims, ifFree })
  } catch (error) {
    answered = Promise.reject(error)
  }
  return answered.then(
    (answer) => {
      if (!holdsPlainly(answer, keeper)) {
        return goOn(core, aim, keeper, epoch, (errand) => errand.answered(answer))
      }
      const hold = new KeptHold(core, keeper, keysOf(claims), answer.token, answer.revision)
      keeper.holdIs(answer.token, hold)
      keeper.endCall(epoch)
      return hold
    },
    (error) => goOn(core, aim, keeper, epoch, (errand) => errand.failed(storeError(error))),
  )
}

/** It holds, under a lease that is believed in, and nothing else was heard of it before. */
function holdsPlainly(answer: Claimed | Busy, keeper: Keeper): answer is Claimed {
  if (answer.outcome === 'busy' || !answer.holds) return false
  return !keeper.channel.knows(answer.token) && keeper.look() === 'held'
}

function goOn(
  core: ClientCore,
  aim: Aim,
  keeper: Keeper,
  epoch: number,
  hand: (errand: ClaimErrand) => void,
): Promise<Hold | Conflict> {
  return new Promise((resolve, reject) => {
    const attempt = new Attempt(core, aim, resolve, reject).begin()
    hand(new ClaimErrand(core, attempt, keeper))
    keeper.endCall(epoch)
  })
}
