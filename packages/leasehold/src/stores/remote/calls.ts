import {
  byteLength,
  type Clock,
  formatDuration,
  LeaseholdError,
  type Timer,
} from '../../port/index.ts'
import { readError } from './answers.ts'
import { CallRing } from './call-ring.ts'
import { AGAIN, type AnswerMessage, DONE, type StreamLimits } from './protocol.ts'
import type { ServerConnection } from './server-connection.ts'

/** Characters in one frame, if there are more to send. */
const FRAME_CHARACTERS = 64 * 1024
/** Characters of one message that can be split: few, because servers count calls. */
const MESSAGE_CHARACTERS = 256 * 1024
/** The maximum number of UTF-8 bytes per character. */
const BYTES_PER_CHARACTER = 3
/** The minimum number of characters per value in our messages. */
const CHARACTERS_PER_VALUE = 2
/**
 * This many calls are sent at once, before the end of the turn that makes more: while we encode the
 * others, the server and its disk have begun with these.
 */
const FRAME_CALLS = 64
/**
 * If answers come quickly, half of the calls in progress are sent at once, but not fewer than this.
 * Calls that are sent in one frame are answered in one frame, and then client, server and disk would
 * take turns. In two halves they work at the same time. If answers come slowly it is the disk or the
 * network that takes the time, and two halves would need twice as many disk writes.
 */
const HALF_MIN = 16
const QUICK_MS = 1.5
/** The overhead of a frame and of a message. */
const FRAME_ROOM = 64
/** Calls that may wait for an answer at a time. */
const CALLS_MAX = 250_000

class Call {
  readonly id: number
  readonly text: string
  /** Sending it twice is the same as sending it once. */
  readonly repeatable: boolean
  readonly deadline: number
  readonly read: (message: AnswerMessage) => unknown
  resolve!: (answer: never) => void
  reject!: (error: LeaseholdError) => void
  sent = false
  /** It was sent on a stream that broke: it may have been carried out. */
  doubtful = false
  over = false

  constructor(
    id: number,
    text: string,
    repeatable: boolean,
    deadline: number,
    read: (message: AnswerMessage) => unknown,
  ) {
    this.id = id
    this.text = text
    this.repeatable = repeatable
    this.deadline = deadline
    this.read = read
  }

  /** Fulfilled with the answer. */
  answer<Answer>(): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
  }
}

/**
 * The calls that wait for an answer.
 *
 * All calls of one turn of the event loop are sent in one frame, or in a few large ones. A call that was
 * sent on a stream which then broke is sent again on the next one if that is harmless: it has a
 * request id, or repeating it changes nothing. Otherwise its outcome is unknown. No call waits longer
 * than the timeout, and while one waits the process keeps running.
 */
export class Calls {
  readonly #clock: Clock
  readonly #timeout: number
  readonly #connection: ServerConnection
  /** In the order of their deadlines, because all have the same timeout. */
  readonly #calls = new CallRing<Call>()
  #waiting: Call[] = []
  /** Messages without an answer. */
  #posts: string[] = []
  #limits: StreamLimits | undefined
  #inFlight = 0
  #flushing = false
  #hasRoom = true
  /** When the calls of this turn must be answered. */
  #deadline = 0
  /** How many calls wait for an answer at a time: the most of late, which is forgotten slowly. */
  #usual = 0
  /** How long the last answer took, and the call that measures the next one. */
  #roundTrip = Infinity
  #measured = 0
  #measuredSince = 0
  #timer: Timer | undefined
  #emptied: (() => void) | undefined

  constructor(clock: Clock, timeout: number, link: ServerConnection) {
    this.#clock = clock
    this.#timeout = timeout
    this.#connection = link
  }

  nextId(): number {
    return this.#calls.next()
  }

  /** Sends a request. Fulfilled with its answer. */
  call<Answer>(
    id: number,
    text: string,
    repeatable: boolean,
    read: (message: AnswerMessage) => Answer,
  ): Promise<Answer> {
    const { frameBytes, inFlight } = this.#limits!
    if (text.length * BYTES_PER_CHARACTER >= frameBytes && byteLength(text) + 2 > frameBytes) {
      return Promise.reject(tooLarge(text, frameBytes))
    }
    if (this.#calls.size >= CALLS_MAX) return Promise.reject(tooMany())
    this.#flushSoon()
    const call = new Call(id, text, repeatable, this.#deadline, read)
    const answer = call.answer<Answer>()
    this.#calls.add(call)
    this.#waiting.push(call)
    const count = this.#waiting.length
    if (count >= this.#enough() && this.#inFlight + count <= inFlight) this.#flush()
    return answer
  }

  /** Whether calls were sent that are not answered yet. */
  get hasSent(): boolean {
    return this.#inFlight > 0
  }

  /** The preferred maximum of characters in one message, if it can be split into several. */
  get messageCharacters(): number {
    return this.#characters(MESSAGE_CHARACTERS)
  }

  /** Sends a message without an answer, if there is a stream. */
  post(text: string): void {
    if (!this.#connection.isUp) return
    this.#posts.push(text)
    this.#flushSoon()
  }

  /** There is a stream: sends all waiting calls. */
  up(limits: StreamLimits): void {
    this.#limits = limits
    this.#hasRoom = true
    this.#flushSoon()
  }

  /** The stream broke. */
  down(cause: string): void {
    this.#posts = []
    const waiting: Call[] = []
    for (const call of this.#calls.all()) {
      if (call.sent && !call.repeatable) this.#fail(call, unanswered(cause))
      else {
        call.doubtful ||= call.sent
        call.sent = false
        waiting.push(call)
      }
    }
    this.#waiting = waiting
    this.#inFlight = 0
    this.#rest()
  }

  drained(): void {
    this.#hasRoom = true
    this.#flushSoon()
  }

  /** An answer has arrived. An answer to a call that is already over is ignored. */
  answer(message: AnswerMessage): void {
    const call = this.#calls.get(message[0])
    if (call === undefined) return
    if (message[1] === AGAIN) {
      if (!call.sent) return
      this.#inFlight--
      call.sent = false
      this.#waiting.push(call)
      return
    }
    this.#end(call)
    if (call.id === this.#measured) this.#roundTrip = this.#clock.now() - this.#measuredSince
    try {
      if (message[1] === DONE) call.resolve(call.read(message) as never)
      else call.reject(readError(message))
    } catch (error) {
      call.reject(unreadable(error))
    }
  }

  /** Call it when a frame of answers was handled: there may be room for more calls. */
  answered(): void {
    if (this.#waiting.length > 0) this.#flushSoon()
    this.#rest()
  }

  /**
   * Rejects the calls that were not sent with this error; those sent on a broken stream may have been
   * carried out. Fulfilled when the calls that were sent have been answered or are late.
   */
  close(error: LeaseholdError): Promise<void> {
    for (const call of this.#calls.all()) {
      if (!call.sent) this.#fail(call, call.doubtful ? interrupted(error) : error)
    }
    this.#rest()
    if (this.#calls.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#emptied = resolve
    })
  }

  #flushSoon(): void {
    if (this.#flushing) return
    this.#flushing = true
    this.#deadline = this.#clock.now() + this.#timeout
    this.#clock.defer(() => {
      this.#flushing = false
      this.#flush()
    })
  }

  /** With how many calls a frame is sent before the turn ends. */
  #enough(): number {
    if (this.#roundTrip > QUICK_MS) return FRAME_CALLS
    return Math.min(Math.max((this.#usual + 1) >> 1, HALF_MIN), FRAME_CALLS)
  }

  #flush(): void {
    this.#arm()
    this.#usual = Math.max(this.#calls.size, this.#usual - (this.#usual >> 6))
    const first = this.#waiting[0]
    if (first !== undefined && this.#calls.get(this.#measured) === undefined) {
      this.#measured = first.id
      this.#measuredSince = this.#clock.now()
    }
    while (this.#connection.isUp && this.#hasRoom) {
      const frame = this.#frame()
      if (frame === undefined) return
      this.#hasRoom = this.#connection.send(frame)
    }
  }

  /** As much as fits into one frame. */
  #frame(): string | undefined {
    const { frameMessages, inFlight } = this.#limits!
    const characters = this.#characters(FRAME_CHARACTERS)
    const texts: string[] = []
    let size = 0
    let taken = 0
    if (this.#posts.length > 0) {
      for (const text of this.#posts) {
        size += text.length + 1
        if (texts.length === frameMessages || (size > characters && texts.length > 0)) break
        texts.push(text)
      }
      this.#posts = this.#posts.slice(texts.length)
    }
    while (taken < this.#waiting.length && texts.length < frameMessages) {
      const call = this.#waiting[taken]!
      if (!call.over) {
        size += call.text.length + 1
        if (this.#inFlight >= inFlight || (size > characters && texts.length > 0)) break
        call.sent = true
        this.#inFlight++
        texts.push(call.text)
      }
      taken++
    }
    this.#waiting = taken < this.#waiting.length ? this.#waiting.slice(taken) : []
    return texts.length === 0 ? undefined : `[${texts.join(',')}]`
  }

  /** This many characters, or fewer if the server's maximum for one frame is lower. */
  #characters(wanted: number): number {
    const { frameBytes, frameValues = Infinity } = this.#limits!
    const most = Math.min(frameBytes / BYTES_PER_CHARACTER, frameValues * CHARACTERS_PER_VALUE)
    return Math.min(wanted, most - FRAME_ROOM)
  }

  #end(call: Call): void {
    call.over = true
    if (call.sent) this.#inFlight--
    this.#calls.remove(call.id)
  }

  #fail(call: Call, error: LeaseholdError): void {
    this.#end(call)
    call.reject(error)
  }

  /** One timer for all: for the oldest, which is the first. */
  #arm(): void {
    if (this.#timer !== undefined) return
    const oldest = this.#calls.oldest()
    if (oldest === undefined) return
    this.#timer = this.#clock.timer(oldest.deadline, () => this.#expire(), true)
  }

  #expire(): void {
    this.#timer = undefined
    const now = this.#clock.now()
    for (;;) {
      const call = this.#calls.oldest()
      if (call === undefined || call.deadline > now) break
      const wasSent = call.sent || call.doubtful
      this.#fail(
        call,
        wasSent ? late(this.#timeout) : unsent(this.#timeout, this.#connection.cause),
      )
    }
    this.#arm()
    this.#rest()
  }

  #rest(): void {
    if (this.#calls.size > 0) return
    this.#timer?.cancel()
    this.#timer = undefined
    this.#emptied?.()
  }
}

function unknown(message: string): LeaseholdError {
  return new LeaseholdError('unknown-outcome', message)
}

function unanswered(cause: string): LeaseholdError {
  return unknown(
    `the stream to the server broke (${cause}) before the answer arrived: it may have been done. With a request id, the store repeats the call by itself.`,
  )
}

function interrupted({ message }: LeaseholdError): LeaseholdError {
  return unknown(
    `the answer was lost, and it cannot be requested again (${message}): it may have been done`,
  )
}

function late(ms: number): LeaseholdError {
  return unknown(`the server did not answer within ${formatDuration(ms)}`)
}

/**
 * Certainly not carried out, but reported as unknown: a caller should treat a server that is away for
 * a while like a lost answer, and repeat the call.
 */
function unsent(ms: number, cause: string): LeaseholdError {
  return unknown(`the server could not be reached for ${formatDuration(ms)} (${cause})`)
}

function unreadable(error: unknown): LeaseholdError {
  return new LeaseholdError(
    'unknown-outcome',
    `the server's answer could not be read (${error}): it may have been done`,
    { cause: error },
  )
}

function tooLarge(text: string, frameBytes: number): LeaseholdError {
  return new LeaseholdError(
    'limit-exceeded',
    `the request has ${byteLength(text)} bytes; the maximum of the server is ${frameBytes}. Send fewer keys or shorter values at once.`,
  )
}

function tooMany(): LeaseholdError {
  return new LeaseholdError(
    'limit-exceeded',
    `${CALLS_MAX} calls wait for an answer, the maximum. Wait for some of them.`,
  )
}
