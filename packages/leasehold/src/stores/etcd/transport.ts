import { type Clock, LeaseholdError, type Random, type Timer } from '../../port/index.ts'
import {
  asBytes,
  type Grpc,
  type GrpcCall,
  type GrpcClient,
  type GrpcMetadata,
  type GrpcStream,
} from './client.ts'
import { closedError, closedMidway, type Fault, faultOf, unanswered } from './faults.ts'
import { readAuthenticate, writeAuthenticate } from './messages.ts'

const AUTHENTICATE = '/etcdserverpb.Auth/Authenticate'
/** A lost connection is tried again soon, and answers may be as large as a page of leases. */
const CHANNEL = {
  'grpc.initial_reconnect_backoff_ms': 50,
  'grpc.max_reconnect_backoff_ms': 1000,
  'grpc.max_receive_message_length': -1,
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 5000,
}
const REST_MIN_MS = 20
const REST_MAX_MS = 500

export interface TransportOptions {
  readonly grpc: Grpc
  readonly endpoints: readonly string[]
  readonly addresses: readonly string[]
  readonly credentials: unknown
  readonly auth: { readonly username: string; readonly password: string } | undefined
  /** How long a call may take in all, and how long one member is waited for. */
  readonly timeout: number
  readonly patience: number
  readonly clock: Clock
  readonly random: Random
}

/** A call that failed for a reason that its caller handles: the fault says which. */
export class EtcdFault extends Error {
  readonly fault: Fault

  constructor(fault: Fault) {
    super(fault.kind)
    this.fault = fault
  }
}

export function isFault(error: unknown, kind: Fault['kind']): boolean {
  return error instanceof EtcdFault && error.fault.kind === kind
}

/**
 * What being sent again does: `reads` changes nothing, or nothing that anybody could tell;
 * `repeatable` gives the same answer and does no harm; what is done `once` must not be sent again.
 */
export type Effect = 'reads' | 'repeatable' | 'once'

/** A call under way. A class and not an object that is put together: there are thousands a second. */
class Call {
  readonly method: string
  readonly request: Buffer
  readonly effect: Effect
  /** It asks for the token that the others are sent with. */
  readonly login: boolean
  readonly deadline: number
  readonly resolve: (answer: Buffer) => void
  readonly reject: (error: Error) => void
  /** How often it was sent or tried. */
  tries = 0
  endpoint = 0
  /** When the member is given up that it was sent to. */
  overdueAt = 0
  sent: GrpcCall | undefined = undefined
  /** It was sent, and may have been carried out though no answer came. */
  inDoubt = false

  constructor(
    method: string,
    request: Buffer,
    effect: Effect,
    login: boolean,
    deadline: number,
    resolve: (answer: Buffer) => void,
    reject: (error: Error) => void,
  ) {
    this.method = method
    this.request = request
    this.effect = effect
    this.login = login
    this.deadline = deadline
    this.resolve = resolve
    this.reject = reject
  }
}

/**
 * Calls to whichever member answers. All go to one member, until that fails: then the next is tried,
 * with a pause after each round. A call that may have been carried out is sent again only where it
 * is `repeatable`. Members that have no leader refuse at once, so that a member that is cut off from
 * the others is left like one that is down.
 */
export class Transport {
  readonly #options: TransportOptions
  readonly #clients: readonly GrpcClient[]
  readonly #waiting = new Set<Call>()
  /** What calls are sent with; being asked for, or to be asked for by the next call. */
  #metadata: Promise<GrpcMetadata> | GrpcMetadata | undefined
  #current = 0
  #timer: Timer | undefined
  #timerAt = Infinity
  #closed = false

  constructor(options: TransportOptions) {
    this.#options = options
    const { grpc, addresses, credentials } = options
    const channel = { ...CHANNEL } as never
    this.#clients = addresses.map((at) => new grpc.Client(at, credentials as never, channel))
    if (options.auth === undefined) this.#metadata = this.#plainMetadata()
  }

  call(method: string, request: Buffer, effect: Effect): Promise<Buffer> {
    return this.#call(method, request, effect, false)
  }

  #call(method: string, request: Buffer, effect: Effect, login: boolean): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const deadline = this.#options.clock.now() + this.#options.timeout
      this.#send(new Call(method, request, effect, login, deadline, resolve, reject))
    })
  }

  /** A stream to the member that is asked now. Whoever opened it says when it has failed. */
  async stream(method: string): Promise<{ stream: GrpcStream; endpoint: number }> {
    const metadata = await (this.#metadata ?? this.#login())
    if (this.#closed) throw closedError()
    const endpoint = this.#current
    const stream = this.#clients[endpoint]!.makeBidiStreamRequest(
      method,
      asBytes,
      asBytes,
      metadata,
    )
    return { stream, endpoint }
  }

  /** The member with this number has failed: the next one is asked from now on. */
  failed(endpoint: number): void {
    if (endpoint === this.#current) this.#current = (endpoint + 1) % this.#clients.length
  }

  /** The token that calls are sent with is too old. */
  loginAgain(): void {
    if (this.#options.auth !== undefined) this.#metadata = undefined
  }

  close(): void {
    this.#closed = true
    this.#timer?.cancel()
    for (const call of this.#waiting) {
      call.sent?.cancel()
      this.#doubt(call)
      this.#refuse(call, closedError())
    }
    this.#waiting.clear()
    for (const client of this.#clients) client.close()
  }

  #send(call: Call): void {
    if (this.#closed) this.#refuse(call, closedError())
    else if (call.login) this.#sendWith(call, this.#plainMetadata())
    else {
      const metadata = this.#metadata ?? this.#login()
      if (metadata instanceof Promise) {
        metadata.then(
          () => this.#send(call),
          (error) => this.#refuse(call, error),
        )
      } else this.#sendWith(call, metadata)
    }
  }

  #sendWith(call: Call, metadata: GrpcMetadata): void {
    const { clock, patience } = this.#options
    const attempt = ++call.tries
    call.endpoint = this.#current
    call.overdueAt = Math.min(clock.now() + patience, call.deadline)
    this.#waiting.add(call)
    const sent = this.#clients[this.#current]!.makeUnaryRequest(
      call.method,
      asBytes,
      asBytes,
      call.request,
      metadata,
      (error, answer) => {
        // A try that was given up says so when the next is under way already.
        if (call.tries !== attempt || !this.#waiting.delete(call)) return
        if (error) this.#fail(call, faultOf(error))
        else call.resolve(answer!)
      },
    )
    if (call.tries === attempt) call.sent = sent
    this.#watchOver(call.overdueAt)
  }

  /** Looks again at this time at the latest. */
  #watchOver(time: number): void {
    if (time >= this.#timerAt) return
    const { clock } = this.#options
    this.#timer?.cancel()
    this.#timerAt = time
    this.#timer = clock.timer(time, () => clock.defer(() => this.#giveUp()))
  }

  #giveUp(): void {
    const { clock, patience } = this.#options
    this.#timer = undefined
    this.#timerAt = Infinity
    const now = clock.now()
    for (const call of [...this.#waiting]) {
      if (call.overdueAt > now) continue
      this.#waiting.delete(call)
      call.sent?.cancel()
      this.#fail(call, { kind: 'unknown', trouble: `no answer within ${patience} ms` })
    }
    // Not in the order in which they were sent: one that was sent again may have little time left.
    let next = Infinity
    for (const { overdueAt } of this.#waiting) next = Math.min(next, overdueAt)
    this.#watchOver(next)
  }

  #fail(call: Call, fault: Fault): void {
    if (fault.kind === 'unknown') this.#doubt(call)
    if (fault.kind === 'refused') this.#refuse(call, fault.error)
    else if (fault.kind === 'stale-login') this.#afterLogin(call, fault.trouble)
    else if (fault.kind === 'unsent' || fault.kind === 'unknown') this.#elsewhere(call, fault)
    else call.reject(new EtcdFault(fault))
  }

  #doubt(call: Call): void {
    if (call.effect !== 'reads') call.inDoubt = true
  }

  /** A call that was sent before and not answered may have been carried out, whatever is said now. */
  #refuse(call: Call, error: LeaseholdError): void {
    if (!call.inDoubt) call.reject(error)
    else if (error.code === 'closed') call.reject(closedMidway())
    else call.reject(unanswered(error.message, this.#options.endpoints))
  }

  /** The member did not answer: another one is asked, where that may be done and there is time. */
  #elsewhere(call: Call, { kind, trouble }: Extract<Fault, { trouble: string }>): void {
    this.failed(call.endpoint)
    const { clock, endpoints } = this.#options
    const rest = this.#rest(call.tries)
    const again = kind === 'unsent' || call.effect !== 'once'
    if (!again || clock.now() + rest >= call.deadline) call.reject(unanswered(trouble, endpoints))
    else if (rest === 0) this.#send(call)
    else clock.timer(clock.now() + rest, () => this.#send(call), true)
  }

  /** No pause while there is a member that was not tried; then longer ones, by chance not alike. */
  #rest(tries: number): number {
    const rounds = Math.floor(tries / this.#clients.length)
    if (tries % this.#clients.length !== 0 || rounds === 0) return 0
    const longest = Math.min(REST_MIN_MS * 2 ** rounds, REST_MAX_MS)
    return longest * (0.5 + 0.5 * this.#options.random.next())
  }

  #afterLogin(call: Call, trouble: string): void {
    if (this.#options.auth === undefined || call.tries > 2) {
      const fix = 'set auth to a user that etcd knows, with its password'
      this.#refuse(
        call,
        new LeaseholdError('unauthenticated', `etcd wants to know who asks (${trouble}): ${fix}`),
      )
      return
    }
    this.loginAgain()
    this.#send(call)
  }

  #plainMetadata(): GrpcMetadata {
    const metadata = new this.#options.grpc.Metadata()
    metadata.set('hasleader', 'true')
    return metadata
  }

  /** Who fails to log in is asked to again by the next call. */
  #login(): Promise<GrpcMetadata> {
    const { username, password } = this.#options.auth!
    const login = this.#call(AUTHENTICATE, writeAuthenticate(username, password), 'reads', true)
    const metadata = login.then((answer) => {
      const ready = this.#plainMetadata()
      ready.set('token', readAuthenticate(answer))
      this.#metadata = ready
      return ready
    })
    this.#metadata = metadata
    metadata.catch(() => {
      if (this.#metadata === metadata) this.#metadata = undefined
    })
    return metadata
  }
}
