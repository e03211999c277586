import type { Clock, LeaseholdError, Timer } from '../../port/index.ts'
import type { GrpcStream } from './client.ts'
import { closedError, unanswered } from './faults.ts'
import { readKeepAlive, writeLeaseId } from './messages.ts'
import type { Transport, TransportOptions } from './transport.ts'

const KEEP_ALIVE = '/etcdserverpb.Lease/LeaseKeepAlive'
/** A follower asks the leader for each lease of a stream after the other: several ask at once. */
const STREAMS_MOST = 8
const LEASES_PER_STREAM = 64
/** A stream that nothing was asked on for so long is closed, so as not to keep the process running. */
const IDLE_MS = 5000
const REST_MS = 50

/** Keeps etcd leases alive, many at once, on streams that are opened again when they break. */
export class KeepAlive {
  readonly #streams: KeepAliveStream[] = []
  readonly #transport: Transport
  readonly #options: TransportOptions

  constructor(transport: Transport, options: TransportOptions) {
    this.#transport = transport
    this.#options = options
  }

  /** For each lease whether it lives. Rejected with an unknown outcome where etcd does not answer. */
  renew(leases: readonly number[]): Promise<boolean[]> {
    const wanted = Math.min(Math.ceil(leases.length / LEASES_PER_STREAM), STREAMS_MOST)
    while (this.#streams.length < wanted) {
      this.#streams.push(new KeepAliveStream(this.#transport, this.#options))
    }
    return Promise.all(leases.map((lease, at) => this.#streams[at % wanted]!.ask(lease)))
  }

  close(): void {
    for (const stream of this.#streams) stream.close()
  }
}

interface Question {
  readonly lease: number
  readonly deadline: number
  sentAt: number
  readonly resolve: (alive: boolean) => void
  readonly reject: (error: LeaseholdError) => void
}

class KeepAliveStream {
  readonly #transport: Transport
  readonly #options: TransportOptions
  readonly #clock: Clock
  /** Those that were asked, in the order in which etcd answers them. */
  #questions: Question[] = []
  #stream: GrpcStream | undefined
  #opening = false
  #endpoint = 0
  #timer: Timer | undefined
  #closed = false

  constructor(transport: Transport, options: TransportOptions) {
    this.#transport = transport
    this.#options = options
    this.#clock = options.clock
  }

  ask(lease: number): Promise<boolean> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(closedError())
      const now = this.#clock.now()
      const deadline = now + this.#options.timeout
      this.#questions.push({ lease, deadline, sentAt: now, resolve, reject })
      if (this.#stream) this.#stream.write(writeLeaseId(lease))
      else if (!this.#opening) this.#open()
      this.#watchOver()
    })
  }

  close(): void {
    this.#closed = true
    this.#timer?.cancel()
    this.#drop()
    for (const question of this.#questions) question.reject(closedError())
    this.#questions = []
  }

  #open(): void {
    this.#opening = true
    this.#transport.stream(KEEP_ALIVE).then(
      ({ stream, endpoint }) => {
        this.#opening = false
        this.#stream = stream
        this.#endpoint = endpoint
        stream.on('data', (bytes) => this.#hear(bytes))
        stream.on('error', (error) => this.#broken(stream, error.message))
        stream.on('end', () => this.#broken(stream, 'the stream was ended'))
        if (this.#closed) return this.#drop()
        for (const question of this.#questions) {
          question.sentAt = this.#clock.now()
          stream.write(writeLeaseId(question.lease))
        }
      },
      (error: LeaseholdError) => {
        this.#opening = false
        for (const question of this.#questions) question.reject(error)
        this.#questions = []
      },
    )
  }

  #hear(bytes: Buffer): void {
    const { id, alive } = readKeepAlive(bytes)
    const at = this.#questions.findIndex(({ lease }) => lease === id)
    if (at >= 0) this.#questions.splice(at, 1)[0]!.resolve(alive)
  }

  /** Looks again when the first question is overdue, or when the stream has been idle. */
  #watchOver(): void {
    if (this.#timer !== undefined) return
    const { patience } = this.#options
    const first = this.#questions[0]
    const next = first ? first.sentAt + patience : this.#clock.now() + IDLE_MS
    // After a stall of this process what etcd has said meanwhile comes first.
    this.#timer = this.#clock.timer(next, () => {
      this.#clock.defer(() => this.#look(first === undefined))
    })
  }

  #look(wasIdle: boolean): void {
    this.#timer = undefined
    const { patience } = this.#options
    const [late] = this.#questions
    if (late === undefined && wasIdle) this.#drop()
    if (late && this.#stream && late.sentAt + patience <= this.#clock.now()) {
      this.#broken(this.#stream, `no answer within ${patience} ms`)
    }
    if (this.#stream && !this.#closed) this.#watchOver()
  }

  #broken(stream: GrpcStream, trouble: string): void {
    if (stream !== this.#stream) return
    this.#drop()
    this.#transport.failed(this.#endpoint)
    const now = this.#clock.now()
    const late = this.#questions.filter(({ deadline }) => deadline <= now + REST_MS)
    this.#questions = this.#questions.filter(({ deadline }) => deadline > now + REST_MS)
    for (const { reject } of late) reject(unanswered(trouble, this.#options.endpoints))
    if (this.#questions.length === 0 || this.#closed) return
    this.#opening = true
    this.#clock.timer(now + REST_MS, () => this.#closed || this.#open(), true)
    this.#watchOver()
  }

  #drop(): void {
    const stream = this.#stream
    this.#stream = undefined
    stream?.cancel()
  }
}
