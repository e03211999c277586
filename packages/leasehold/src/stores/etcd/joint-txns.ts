import { type Clock, isLeaseholdError } from '../../port/index.ts'
import type { Api } from './api.ts'
import type { Op, Txn, TxnAnswer } from './messages.ts'

/** So many are carried out as one at most. etcd takes 128 operations, of which each is one. */
const TOGETHER_MOST = 32

/** And so many letters have their names and values at most, of three bytes each: etcd takes 1.5 MiB. */
const LETTERS_MOST = 256 * 1024

interface Waiting {
  readonly txn: Txn
  readonly repeatable: boolean
  readonly resolve: (answer: TxnAnswer) => void
  readonly reject: (error: unknown) => void
}

/**
 * Gathers the transactions of one turn of the event loop and carries them out as one, each as a
 * transaction within it that succeeds or fails by itself. A call costs a gRPC client many times what
 * a transaction costs, so that this nearly halves what a lock and its release do.
 *
 * All of them happen in one revision. So this is not for claims, whose revision is their token.
 */
export class JointTxns {
  readonly #api: Api
  readonly #clock: Clock
  #waiting: Waiting[] = []
  /** What those that wait write: etcd refuses to write a key twice at once. */
  #written = new Set<string>()
  #letters = 0

  constructor(api: Api, clock: Clock) {
    this.#api = api
    this.#clock = clock
  }

  /** As `Api.txn`. Writes keys by their names, and nothing within another transaction. */
  txn(txn: Txn, repeatable: boolean): Promise<TxnAnswer> {
    return new Promise((resolve, reject) => {
      const ops = [...txn.success, ...txn.failure]
      const keys = ops.flatMap(keyWritten)
      const letters = ops.reduce((sum, op) => sum + lettersOf(op), 0)
      const isTooMuch = this.#letters + letters > LETTERS_MOST
      if (isTooMuch || keys.some((key) => this.#written.has(key))) this.#send()
      this.#letters += letters
      for (const key of keys) this.#written.add(key)
      const count = this.#waiting.push({ txn, repeatable, resolve, reject })
      if (count === 1) this.#clock.defer(() => this.#send())
      else if (count === TOGETHER_MOST) this.#send()
    })
  }

  #send(): void {
    const all = this.#waiting
    this.#waiting = []
    this.#written = new Set()
    this.#letters = 0
    if (all.length > 1) void this.#together(all)
    else if (all.length === 1) this.#alone(all[0]!)
  }

  #alone({ txn, repeatable, resolve, reject }: Waiting): void {
    this.#api.txn(txn, repeatable).then(resolve, reject)
  }

  async #together(all: readonly Waiting[]): Promise<void> {
    const success = all.map(({ txn }): Op => ({ do: 'txn', ...txn }))
    const repeatable = all.every((each) => each.repeatable)
    try {
      const answer = await this.#api.txn({ compare: [], success, failure: [] }, repeatable)
      for (const [at, { resolve }] of all.entries()) {
        resolve({ ...answer.results[at]!.txn!, revision: answer.revision })
      }
    } catch (error) {
      // Where etcd refused it for one of them, nothing was done: the others must not suffer for it.
      const isUnknown = isLeaseholdError(error) && error.outcome === 'unknown'
      for (const each of all) {
        if (isUnknown) each.reject(error)
        else this.#alone(each)
      }
    }
  }
}

function keyWritten(op: Op): string[] {
  return op.do === 'put' || op.do === 'delete' ? [String(op.key)] : []
}

function lettersOf(op: Op): number {
  if (op.do === 'txn') return 0
  return op.key.length + (op.do === 'put' ? op.value.length : 0)
}
