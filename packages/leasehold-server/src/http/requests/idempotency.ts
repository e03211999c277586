import { TwoGenerationMap } from 'leasehold/kernel'
import { isLeaseholdError, type RequestId, sha256, show } from 'leasehold/port'
import type { Admission, Principal } from '../../access/index.ts'
import { KeyReused, NotAvailable } from '../responses/problem.ts'
import type { Call, Route } from '../route.ts'
import { type Audience, goneError, type HttpCall } from './call.ts'
import { Withdrawn } from './waits.ts'

/** The least number of Idempotency-Keys that are remembered with their requests. */
const KEYS_KNOWN = 16_384
/** After this many withdrawals, the callers of a request never wait for its answer. */
const ATTEMPTS_MAX = 1000

/** Hashes of the parts of a request, by name. */
type Parts = ReadonlyMap<string, string>

interface Known {
  asked: Parts | undefined
  /** The number of withdrawn claims; each attempt has its own request id. */
  attempt: number
  /** The refusal, if the keys were not available: a repeat gets the same answer. */
  refusal: NotAvailable | undefined
}

/**
 * Requests with an Idempotency-Key. Requests with the same key are performed once: a repeat joins the
 * running execution, and all get its answer. It runs while one of them is connected. Afterwards, the
 * store recognises the request by its id and repeats the answer.
 */
export class IdempotentRequests {
  readonly #running = new Map<RequestId, Execution>()
  readonly #known = new TwoGenerationMap<RequestId, Known>(KEYS_KNOWN)

  async answer(route: Route, call: HttpCall, id: RequestId): Promise<unknown> {
    const asked = partsOf(call)
    for (;;) {
      const known = this.#knownOf(id, asked, call)
      if (known.refusal !== undefined) throw known.refusal
      const running = this.#running.get(id)
      if (running === undefined) {
        known.asked = asked
        return this.#begin(route, call, id, known).join(call.audience)
      }
      if (running.accepts(call.principal)) return running.join(call.audience)
      await running.over
      if (call.gone) throw goneError()
    }
  }

  #knownOf(id: RequestId, asked: Parts, call: Call): Known {
    const known = this.#known.get(id)
    if (known === undefined) {
      const made = { asked: undefined, attempt: 0, refusal: undefined }
      this.#known.set(id, made)
      return made
    }
    const other = known.asked && differences(known.asked, asked)
    if (other === undefined || other.length === 0) return known
    const key = show(call.header('idempotency-key'))
    throw new KeyReused(
      `Idempotency-Key ${key} was first used with a different ${other.join(', ')}: repeat the same request, or use another key`,
    )
  }

  #begin(route: Route, call: HttpCall, id: RequestId, known: Known): Execution {
    const admission = call.admitAgain()
    const execution = new Execution(admission, async (audience) => {
      try {
        return await carryOut(route, call, id, known, audience, admission)
      } finally {
        admission.leave()
        this.#running.delete(id)
      }
    })
    this.#running.set(id, execution)
    return execution
  }
}

/** One execution and all callers that wait for its answer. */
class Execution implements Audience {
  readonly over: Promise<void>
  readonly #admission: Admission
  readonly #answer: Promise<unknown>
  readonly #callers = new Set<Audience>()
  #abandoned = false
  #left: (() => void)[] = []

  constructor(admission: Admission, work: (audience: Audience) => Promise<unknown>) {
    this.#admission = admission
    // In a later microtask, after the first caller has joined.
    this.#answer = Promise.resolve().then(() => work(this))
    this.over = this.#answer.then(ignore, ignore)
  }

  /** False if it is being withdrawn, or if its access token has ended. */
  accepts(principal: Principal): boolean {
    return !this.#abandoned && principal === this.#admission.principal && !principal.ended
  }

  get gone(): boolean {
    return this.#abandoned
  }

  whenGone(left: () => void): void {
    if (this.#abandoned) left()
    else this.#left.push(left)
  }

  join(caller: Audience): Promise<unknown> {
    this.#callers.add(caller)
    caller.whenGone(() => {
      this.#callers.delete(caller)
      if (this.#callers.size > 0) return
      this.#abandoned = true
      for (const left of this.#left.splice(0)) left()
    })
    return this.#answer
  }
}

async function carryOut(
  route: Route,
  call: HttpCall,
  id: RequestId,
  known: Known,
  audience: Audience,
  admission: Admission,
): Promise<unknown> {
  for (;;) {
    const request = known.attempt === 0 ? id : `${id}-${known.attempt}`
    try {
      return await route.handle(call.sharedBy(audience, admission, request))
    } catch (error) {
      if (error instanceof NotAvailable) known.refusal = error
      if (wasNotBegun(error)) known.asked = undefined
      if (!(error instanceof Withdrawn)) throw error
      if (known.attempt >= ATTEMPTS_MAX) throw new KeyReused(abandonedMessage())
      known.attempt++
      if (error.reason !== undefined) throw error.reason
    }
  }
}

function abandonedMessage(): string {
  return `requests with this Idempotency-Key were abandoned ${ATTEMPTS_MAX} times: use another key`
}

/** A malformed or forbidden request may be corrected and sent with the same key. */
function wasNotBegun(error: unknown): boolean {
  return (
    isLeaseholdError(error, 'invalid-argument') ||
    isLeaseholdError(error, 'unauthenticated') ||
    isLeaseholdError(error, 'forbidden')
  )
}

/** `wait` is not compared: a repeat may have less time left. */
function partsOf({ query, body }: Call): Parts {
  const parts = new Map<string, string>()
  for (const [name, value] of Object.entries(query)) {
    if (name !== 'wait') parts.set(name, hashOf(value))
  }
  for (const [name, value] of Object.entries(body ?? {})) parts.set(name, hashOf(value))
  return parts
}

function differences(first: Parts, second: Parts): string[] {
  const names = new Set([...first.keys(), ...second.keys()])
  return [...names].filter((name) => first.get(name) !== second.get(name)).sort()
}

function hashOf(value: unknown): string {
  return sha256(JSON.stringify(value, inOrder)).slice(0, 22)
}

/** Sorts the fields of objects, because their order has no meaning. */
function inOrder(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}

function ignore(): void {}
