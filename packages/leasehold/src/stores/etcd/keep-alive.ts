import type { Clock, LeaseholdError, Timer } from '../../port/index.ts'
import type { GrpcStream } from './client.ts'
import { closedError, closedMidway, unanswered } from './faults.ts'
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
  /** When it was sent, on this stream or on one before it; 0 while it was not. */
  sentAt: number
  readonly resolve: (alive: boolean) => void
  readonly reject: (error: LeaseholdError) => void
}

class KeepAliveStream {
  readonly #transport: Transport
  readonly #options: TransportOptions
  readonly #clock: Clock
  /** Those that were asked, in the order in which etcd answers them, and in that of their deadlines. */
  #questions: Question[] = []
  #stream: GrpcStream | undefined
  #opening = false
  #endpoint = 0
  /** When the member last said something. */
  #heardAt = 0
  #timer: Timer | undefined
  #timerAt = Infinity
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
      const question = { lease, deadline, sentAt: 0, resolve, reject }
      this.#questions.push(question)
      if (this.#stream) this.#send(this.#stream, question, now)
      else if (!this.#opening) this.#open()
      this.#watchOver()
    })
  }

  close(): void {
    this.#closed = true
    this.#timer?.cancel()
    this.#drop()
    for (const { sentAt, reject } of this.#questions) {
      reject(sentAt > 0 ? closedMidway() : closedError())
    }
    this.#questions = []
  }

  #send(stream: GrpcStream, question: Question, now: number): void {
    question.sentAt = now
    stream.write(writeLeaseId(question.lease))
  }

  #open(): void {
    this.#opening = true
    this.#transport.stream(KEEP_ALIVE).then(
      ({ stream, endpoint }) => {
        this.#opening = false
        this.#stream = stream
        this.#endpoint = endpoint
        stream.on('data', (bytes) => this.#hear(stream, bytes))
        stream.on('error', (error) => this.#broken(stream, error.message))
        stream.on('end', () => this.#broken(stream, 'the stream was ended'))
        if (this.#closed) return this.#drop()
        const now = this.#clock.now()
        for (const question of this.#questions) this.#send(stream, question, now)
        this.#watchOver()
      },
      (error: LeaseholdError) => {
        this.#opening = false
        for (const question of this.#questions) question.reject(error)
        this.#questions = []
      },
    )
  }

  /** What a stream says that was left is not heard: it may answer what was asked before it was left. */
  #hear(stream: GrpcStream, bytes: Buffer): void {
    if (stream !== this.#stream) return
    this.#heardAt = this.#clock.now()
    const { id, alive } = readKeepAlive(bytes)
    const at = this.#questions.findIndex(({ lease }) => lease === id)
    if (at >= 0) this.#questions.splice(at, 1)[0]!.resolve(alive)
  }

  /** When the member is to be left, a question to be given up, or an idle stream to be closed. */
  #dueAt(): number {
    const first = this.#questions[0]
    if (first === undefined) return this.#stream ? this.#heardAt + IDLE_MS : Infinity
    // A member that answers one after the other is not silent, however many were asked.
    const silentSince = Math.max(first.sentAt, this.#heardAt)
    const overdue = this.#stream ? silentSince + this.#options.patience : Infinity
    return Math.min(overdue, first.deadline)
  }

  /** Looks again when something is due. A timer that is due sooner looks then, and sets the next. */
  #watchOver(): void {
    const at = this.#dueAt()
    if (this.#closed || at >= this.#timerAt || at === Infinity) return
    this.#timer?.cancel()
    this.#timerAt = at
    // After a stall of this process what etcd has said meanwhile comes first.
    this.#timer = this.#clock.timer(at, () => this.#clock.defer(() => this.#look()))
  }

  #look(): void {
    this.#timer = undefined
    this.#timerAt = Infinity
    const now = this.#clock.now()
    if (this.#dueAt() <= now) {
      const trouble = `no answer within ${this.#options.patience} ms`
      if (this.#questions.length === 0) this.#drop()
      else if (this.#stream) this.#broken(this.#stream, trouble)
      else this.#giveUp(now, trouble)
    }
    this.#watchOver()
  }

  /**
   * A question that is given up leaves with its stream: its answer, if it came later, would be taken
   * for that to a later question about the same lease, which would then seem to live longer than it does.
   */
  #broken(stream: GrpcStream, trouble: string): void {
    if (stream !== this.#stream) return
    this.#drop()
    this.#transport.failed(this.#endpoint)
    const now = this.#clock.now()
    this.#giveUp(now + REST_MS, trouble)
    if (this.#questions.length === 0 || this.#closed) return
    this.#opening = true
    this.#clock.timer(now + REST_MS, () => this.#closed || this.#open(), true)
    this.#watchOver()
  }

  /** Those that must be answered by this time cannot be any more. */
  #giveUp(time: number, trouble: string): void {
    const late = this.#questions.filter(({ deadline }) => deadline <= time)
    this.#questions = this.#questions.filter(({ deadline }) => deadline > time)
    for (const { reject } of late) reject(unanswered(trouble, this.#options.endpoints))
  }

  #drop(): void {
    const stream = this.#stream
    this.#stream = undefined
    stream?.cancel()
  }
}
