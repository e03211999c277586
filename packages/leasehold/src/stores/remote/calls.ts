import { type Clock, LeaseholdError, type Timer } from '../../port/index.ts'
import { readError } from './answers.ts'
import { CallRing } from './call-ring.ts'
import type { Link } from './link.ts'
import { AGAIN, type AnswerMessage, DONE, type StreamLimits } from './protocol.ts'

/** Characters that are put into one frame, if there are more to send. */
const FRAME_CHARACTERS = 128 * 1024
/**
 * So many calls leave at once, and not at the end of the turn that asks for more: while we write the
 * others down the server has begun with these, and its disk too.
 */
const FRAME_CALLS = 64
/** Calls that may wait for an answer at a time. */
const CALLS_MAX = 250_000

interface Call {
  readonly id: number
  readonly text: string
  /** Sending it twice is the same as sending it once. */
  readonly repeatable: boolean
  readonly deadline: number
  readonly read: (message: AnswerMessage) => unknown
  readonly resolve: (answer: never) => void
  readonly reject: (error: LeaseholdError) => void
  sent: boolean
  over: boolean
}

/**
 * The calls that wait for an answer.
 *
 * What was asked for in one turn of the event loop leaves in one frame, or in a few of many. A call that was sent on a
 * stream which then broke is sent again on the next one where that is harmless: it has a request id,
 * or repeating it changes nothing. Otherwise its outcome is unknown. No call waits for longer than
 * the time-out, and while one waits the process keeps running.
 */
export class Calls {
  readonly #clock: Clock
  readonly #timeout: number
  readonly #link: Link
  /** In the order of their deadlines, since all have the same time-out. */
  readonly #calls = new CallRing<Call>()
  #waiting: Call[] = []
  /** Messages that nobody waits for an answer to. */
  #posts: string[] = []
  #limits: StreamLimits | undefined
  #inFlight = 0
  #flushing = false
  #hasRoom = true
  /** When the calls of this turn must be answered. */
  #deadline = 0
  #timer: Timer | undefined
  #emptied: (() => void) | undefined

  constructor(clock: Clock, timeout: number, link: Link) {
    this.#clock = clock
    this.#timeout = timeout
    this.#link = link
  }

  nextId(): number {
    return this.#calls.next()
  }

  /** Sends a request, and is fulfilled with its answer. */
  call<Answer>(
    id: number,
    text: string,
    repeatable: boolean,
    read: (message: AnswerMessage) => Answer,
  ): Promise<Answer> {
    const { frameBytes } = this.#limits!
    if (text.length * 3 >= frameBytes && Buffer.byteLength(text) + 2 > frameBytes) {
      return Promise.reject(tooLarge(text, frameBytes))
    }
    if (this.#calls.size >= CALLS_MAX) return Promise.reject(tooMany())
    this.#flushSoon()
    return new Promise<Answer>((resolve, reject) => {
      const deadline = this.#deadline
      const call: Call = {
        id,
        text,
        repeatable,
        deadline,
        read,
        resolve,
        reject,
        sent: false,
        over: false,
      }
      this.#calls.add(call)
      this.#waiting.push(call)
      if (this.#waiting.length >= FRAME_CALLS && this.#mayAllLeave()) this.#flush()
    })
  }

  /** Sends a message that has no answer, if there is a stream. */
  post(text: string): void {
    if (!this.#link.isUp) return
    this.#posts.push(text)
    this.#flushSoon()
  }

  /** There is a stream: everything that waits is sent. */
  up(limits: StreamLimits): void {
    this.#limits = limits
    this.#hasRoom = true
    if (this.#waiting.length > 0) this.#flushSoon()
  }

  /** The stream broke. */
  down(trouble: string): void {
    this.#posts = []
    this.#inFlight = 0
    const waiting: Call[] = []
    for (const call of this.#calls.all()) {
      if (call.sent && !call.repeatable) this.#fail(call, unanswered(trouble))
      else {
        call.sent = false
        waiting.push(call)
      }
    }
    this.#waiting = waiting
    this.#rest()
  }

  drained(): void {
    this.#hasRoom = true
    this.#flushSoon()
  }

  /** An answer has come. Those to calls that are over already are nobody's. */
  answer(message: AnswerMessage): void {
    const call = this.#calls.get(message[0])
    if (call === undefined) return
    if (message[1] === AGAIN) {
      this.#inFlight--
      call.sent = false
      this.#waiting.push(call)
      return
    }
    this.#end(call)
    if (message[1] === DONE) call.resolve(call.read(message) as never)
    else call.reject(readError(message))
  }

  /** To be called when a frame of answers was handled: there may be room for more calls. */
  answered(): void {
    if (this.#waiting.length > 0) this.#flushSoon()
    this.#rest()
  }

  /** Fails what was not sent, with this; fulfilled when what was sent has been answered or is late. */
  close(error: LeaseholdError): Promise<void> {
    for (const call of this.#calls.all()) if (!call.sent) this.#fail(call, error)
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

  #mayAllLeave(): boolean {
    if (!this.#link.isUp || !this.#hasRoom) return false
    return this.#inFlight + this.#waiting.length <= this.#limits!.inFlight
  }

  #flush(): void {
    this.#arm()
    while (this.#link.isUp && this.#hasRoom) {
      const frame = this.#frame()
      if (frame === undefined) return
      this.#hasRoom = this.#link.send(frame)
    }
  }

  /** As much as may go into one frame. */
  #frame(): string | undefined {
    const { frameMessages, inFlight, frameBytes } = this.#limits!
    const characters = Math.min(FRAME_CHARACTERS, frameBytes / 3)
    const texts = this.#posts.splice(0, frameMessages)
    let size = 0
    let taken = 0
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
    this.#waiting = taken === this.#waiting.length ? [] : this.#waiting.slice(taken)
    return texts.length === 0 ? undefined : `[${texts.join(',')}]`
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
      this.#fail(call, call.sent ? late(this.#timeout) : unsent(this.#timeout, this.#link.trouble))
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

function unanswered(trouble: string): LeaseholdError {
  return unknown(
    `the stream to the server broke (${trouble}) before the answer came: it may have been done; give a request id, and it is sent again by itself`,
  )
}

function late(ms: number): LeaseholdError {
  return unknown(`the server did not answer within ${ms} ms: it may have been done`)
}

/**
 * Known not to have been carried out, and yet called unknown: whoever asked should treat a server
 * that is away for a while like an answer that was lost, and ask again.
 */
function unsent(ms: number, trouble: string): LeaseholdError {
  return unknown(`the server could not be reached for ${ms} ms (${trouble}): nothing was sent`)
}

function tooLarge(text: string, frameBytes: number): LeaseholdError {
  return new LeaseholdError(
    'limit-exceeded',
    `the request has ${Buffer.byteLength(text)} bytes, and the server takes at most ${frameBytes}: send fewer keys or shorter values at once`,
  )
}

function tooMany(): LeaseholdError {
  return new LeaseholdError(
    'limit-exceeded',
    `${CALLS_MAX} calls wait for an answer already: wait for some of them`,
  )
}
