import { isLeaseholdError } from 'leasehold'
import type { LeaseId } from 'leasehold/port'
import type { Call, CallAnswer } from '../checkers/history.js'
import type { Harness } from '../world/harness.js'
import { PortUser } from './port-user.js'

const KEYS = ['raw/a', 'raw/b']

/**
 * Calls the port directly, and not always correctly: repeats requests, releases claims of others,
 * lets leases expire, and reads in between.
 */
export class Caller extends PortUser {
  #lease: { readonly id: LeaseId; readonly ttl: number } | undefined
  #mine: { readonly key: string; readonly token: number }[] = []
  #requests = 0

  constructor(harness: Harness, name: string) {
    super(harness, name, 500)
  }

  protected forget(): void {
    this.#lease = undefined
    this.#mine = []
  }

  protected step(): void {
    if (!this.#lease || this.random.chance(0.05)) this.#grant()
    else {
      const dice = this.random.next()
      if (dice < 0.3) this.#claim(this.#lease)
      else if (dice < 0.5) this.#release(this.#lease)
      else if (dice < 0.8) this.#renew(this.#lease)
      else if (dice < 0.92) this.#readKey()
      else this.#readLease(this.#lease)
    }
  }

  #grant(): void {
    const ttl = this.random.pick([400, 1000, 3000])
    const request = this.#requestId()
    const call = this.#call('grant', '', '', 0, ttl, request)
    this.#send(call, async () => {
      const answer = await this.store.grant({ holder: this.node.name, ttl, request })
      if (answer.outcome === 'busy') return { type: 'busy', revision: answer.revision, token: 0 }
      this.#lease = { id: answer.lease, ttl }
      return { type: 'done', revision: answer.revision, token: 0, lease: answer.lease }
    })
  }

  #claim(lease: { readonly id: LeaseId; readonly ttl: number }): void {
    const key = this.random.pick(KEYS)
    const request = this.#requestId()
    const call = this.#call('claim', key, lease.id, 0, lease.ttl, request)
    this.#send(call, async () => {
      const claims = [{ key }]
      const answer = await this.store.claim({ lease: lease.id, claims, ifFree: true, request })
      const { revision } = answer
      if (answer.outcome === 'busy')
        return { type: 'busy', revision, token: answer.ahead[0]!.first.token }
      this.#mine.push({ key, token: answer.token })
      return { type: 'done', revision, token: answer.token, lease: lease.id }
    })
  }

  #release(lease: { readonly id: LeaseId; readonly ttl: number }): void {
    // Mostly its own latest claim; sometimes one that it has released, or one of another.
    const own = this.#mine.at(this.random.chance(0.7) ? -1 : this.random.integer(-3, -1))
    if (!own) return
    const token = this.random.chance(0.1) ? own.token + 1 : own.token
    const request = this.#requestId()
    const call = this.#call('release', own.key, lease.id, token, lease.ttl, request)
    this.#send(call, async () => {
      const keys = [own.key]
      const { revision } = await this.store.release({ lease: lease.id, keys, token, request })
      return { type: 'done', revision, token, lease: lease.id }
    })
  }

  #renew(lease: { readonly id: LeaseId; readonly ttl: number }): void {
    const call = this.#call('renew', '', lease.id, 0, lease.ttl, undefined)
    this.#send(call, async () => {
      const { lost } = await this.store.renew([lease.id])
      if (lost.length === 0) return { type: 'done', revision: 0, token: 0, lease: lease.id }
      if (this.#lease?.id === lease.id) this.#lease = undefined
      return { type: 'lost' }
    })
  }

  #readKey(): void {
    const key = this.random.pick([...KEYS, 'job', 'gpu'])
    const invoked = this.harness.world.now
    this.store.read({ key }).then(
      ({ revision, claims, holders }) => {
        this.harness.keyRead({ key, revision, invoked, claims, holders })
      },
      () => undefined,
    )
  }

  #readLease({ id, ttl }: { readonly id: LeaseId; readonly ttl: number }): void {
    this.store.read({ lease: id }).then(
      ({ lease, claims }) => {
        if (!lease) return
        const { grace, renewedAt, until } = lease
        const tokens = claims.map(({ token }) => token)
        const unanswered = this.harness.calls.reduce(
          (count, call) => (call.lease === id && !call.answer ? count + 1 : count),
          0,
        )
        this.harness.leaseRead({ lease: id, ttl, grace, renewedAt, until, tokens, unanswered })
      },
      () => undefined,
    )
  }

  /** Sends a call, sometimes twice if it has a request id. Each answer is recorded. */
  #send(call: Call, ask: () => Promise<CallAnswer>): void {
    const send = (): void => {
      ask().then(
        (answer) => this.#answered(call, answer),
        (error: unknown) => {
          if (isLeaseholdError(error) && error.outcome === 'refused') {
            this.#answered(call, { type: 'refused', code: error.code })
          }
        },
      )
    }
    send()
    if (call.request === undefined) return
    for (let repeat = this.random.integer(0, 2); repeat > 0; repeat--) {
      this.later(this.random.between(1, 3000), send)
    }
  }

  #answered(call: Call, answer: CallAnswer): void {
    if (call.answer) {
      this.harness.repeated({ ...call, answer })
      return
    }
    call.answer = answer
    call.answered = this.harness.world.now
    this.harness.called(call)
  }

  #call(
    kind: Call['kind'],
    key: string,
    lease: LeaseId,
    token: number,
    ttl: number,
    request: string | undefined,
  ): Call {
    const invoked = this.harness.world.now
    const client = this.node.name
    const call: Call = {
      client,
      kind,
      key,
      lease,
      token,
      ttl,
      request,
      invoked,
      answered: Infinity,
      answer: undefined,
    }
    this.harness.calls.push(call)
    return call
  }

  #requestId(): string {
    return `${this.node.name}-${++this.#requests}`
  }
}
