import type { RequestId, Revision } from '../../port/index.ts'
import type { Answer } from '../outputs/index.ts'
import { TwoGenerationMap } from './two-generation-map.ts'

/**
 * The answers of calls with request ids, for calls that are repeated.
 *
 * Nearly all are claims that hold at once. Of such an answer only the revision is kept, which says
 * everything: an object for each would be copied twice by the garbage collector, and take most of
 * the memory.
 */
export class RememberedAnswers {
  readonly #answers: TwoGenerationMap<RequestId, Answer | Revision>

  /** Keeps at least this many. */
  constructor(atLeast: number) {
    this.#answers = new TwoGenerationMap(atLeast)
  }

  get(request: RequestId): Answer | undefined {
    const kept = this.#answers.get(request)
    return typeof kept === 'number' ? heldAtOnce(kept) : kept
  }

  set(request: RequestId, answer: Answer): void {
    this.#answers.set(request, isHeldAtOnce(answer) ? answer.revision : answer)
  }

  copy(from: RememberedAnswers): void {
    this.#answers.copy(from.#answers)
  }

  /** Oldest first. */
  *entries(): Generator<[RequestId, Answer]> {
    for (const [request, kept] of this.#answers.entries()) {
      yield [request, typeof kept === 'number' ? heldAtOnce(kept) : kept]
    }
  }
}

function isHeldAtOnce(answer: Answer): answer is Answer & { readonly revision: Revision } {
  if (!('outcome' in answer) || answer.outcome !== 'claimed') return false
  return answer.holds && answer.ahead.length === 0 && answer.token === answer.revision
}

function heldAtOnce(revision: Revision): Answer {
  return { outcome: 'claimed', revision, token: revision, holds: true, ahead: [] }
}
