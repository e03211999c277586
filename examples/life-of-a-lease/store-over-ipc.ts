import type { ChildProcess } from 'node:child_process'
import {
  type Guarantees,
  LeaseholdError,
  type LeaseStore,
  type Notice,
  type Observer,
  type Watch,
  type WatchTarget,
} from 'leasehold/port'

/**
 * A store in another process, over the channel that Node gives a parent and its child.
 *
 * Everything that keeps leases is a `LeaseStore`, so a bridge only has to carry its calls: the
 * client in the child does not know that its store lives elsewhere.
 */
export type Method = 'grant' | 'renew' | 'revoke' | 'claim' | 'release' | 'update' | 'read'

type ToParent =
  | { readonly call: number; readonly method: Method; readonly argument: unknown }
  | { readonly watch: number; readonly target: WatchTarget }
  | { readonly unwatch: number }

type ToChild =
  | { readonly guarantees: Guarantees }
  | { readonly answered: number; readonly answer: unknown }
  | { readonly failed: number; readonly error: Failure }
  | { readonly watched: number; readonly notice: Notice }

/** An error as it is sent: a channel keeps the message of an error, but not its class and code. */
type Failure = Pick<LeaseholdError, 'code' | 'message' | 'reason' | 'by' | 'why'>

/** In the parent: carries out what the child asks. `overhear` gets each call. */
export function lendStore(
  store: LeaseStore,
  child: ChildProcess,
  overhear: (method: Method) => void,
): void {
  const watches = new Map<number, Watch>()
  const send = (message: ToChild) => {
    // A killed child receives nothing more, and that is not an error of the parent.
    if (child.connected) child.send(message, () => {})
  }
  child.on('message', async (message: ToParent) => {
    if ('call' in message) {
      const { call, method, argument } = message
      overhear(method)
      try {
        const answer = await store[method](argument as never)
        send({ answered: call, answer })
      } catch (error) {
        send({ failed: call, error: failureOf(error) })
      }
    } else if ('watch' in message) {
      const { watch: number, target } = message
      const tell = (notice: Notice) => send({ watched: number, notice })
      watches.set(number, store.watch(target, tell))
    } else if ('unwatch' in message) {
      watches.get(message.unwatch)?.close()
      watches.delete(message.unwatch)
    }
  })
  child.on('disconnect', () => {
    for (const watch of watches.values()) watch.close()
  })
  // A call can be lost with a process: the client must number its calls, as over any network.
  send({ guarantees: { ...store.guarantees, inProcess: false } })
}

/** In the child: the parent's store. */
export function borrowStore(): Promise<LeaseStore> {
  return new Promise((resolve) => {
    const pending = new Map<number, PromiseWithResolvers>()
    const observers = new Map<number, Observer>()
    process.on('message', (message: ToChild) => {
      if ('guarantees' in message) {
        resolve(new BorrowedStore(message.guarantees, pending, observers))
      } else if ('answered' in message) {
        pending.get(message.answered)?.resolve(message.answer)
        pending.delete(message.answered)
      } else if ('failed' in message) {
        const { code, message: text, ...details } = message.error
        pending.get(message.failed)?.reject(new LeaseholdError(code, text, details))
        pending.delete(message.failed)
      } else if ('watched' in message) {
        observers.get(message.watched)?.(message.notice)
      }
    })
  })
}

interface PromiseWithResolvers {
  readonly resolve: (answer: unknown) => void
  readonly reject: (error: LeaseholdError) => void
}

class BorrowedStore implements LeaseStore {
  readonly guarantees: Guarantees
  readonly #pending: Map<number, PromiseWithResolvers>
  readonly #observers: Map<number, Observer>
  #number = 0

  constructor(
    guarantees: Guarantees,
    pending: Map<number, PromiseWithResolvers>,
    observers: Map<number, Observer>,
  ) {
    this.guarantees = guarantees
    this.#pending = pending
    this.#observers = observers
  }

  readonly grant = this.#forward('grant')
  readonly renew = this.#forward('renew')
  readonly revoke = this.#forward('revoke')
  readonly claim = this.#forward('claim')
  readonly release = this.#forward('release')
  readonly update = this.#forward('update')
  readonly read = this.#forward('read')

  watch(target: WatchTarget, observer: Observer): Watch {
    const number = ++this.#number
    this.#observers.set(number, observer)
    toParent({ watch: number, target })
    return {
      close: () => {
        if (this.#observers.delete(number)) toParent({ unwatch: number })
      },
    }
  }

  async close(): Promise<void> {
    this.#observers.clear()
  }

  #forward<M extends Method>(method: M): LeaseStore[M] {
    const call = (argument: unknown) =>
      new Promise((resolve, reject) => {
        const number = ++this.#number
        this.#pending.set(number, { resolve, reject })
        toParent({ call: number, method, argument })
      })
    return call as LeaseStore[M]
  }
}

function toParent(message: ToParent): void {
  if (process.connected) process.send?.(message)
}

function failureOf(error: unknown): Failure {
  if (!(error instanceof LeaseholdError)) {
    return failureOf(new LeaseholdError('unknown-outcome', String(error)))
  }
  const { code, message, reason, by, why } = error
  return { code, message, reason, by, why }
}
