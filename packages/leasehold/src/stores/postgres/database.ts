import { type Clock, withTimeout } from '../../port/index.ts'
import { unanswered } from './calls/call-deadlines.ts'
import type { Connection } from './client.ts'
import { faultOf, isConflict, isLost } from './faults.ts'
import type { Settings } from './options.ts'

/** How often a statement is repeated that was rolled back in favour of others. */
const CONFLICTS_MAX = 5

/**
 * Calls the functions of the schema, one statement each. Their answers are JSON. None takes longer
 * than the timeout, after which its outcome is unknown.
 */
export class Database {
  readonly #connection: Connection
  readonly #schema: string
  readonly #clock: Clock
  readonly #timeout: number
  /** If notifications arrive on this very client, there is no pooler in between. */
  readonly #prepares: boolean
  /** Called when the connection failed: then the listening connection may be broken, too. */
  onFailure: () => void = () => {}

  constructor({ connection, listener, schema, clock, timeout }: Settings) {
    this.#prepares = listener === connection
    this.#connection = connection
    this.#schema = schema
    this.#clock = clock
    this.#timeout = timeout
  }

  /**
   * `call` is a function with its parameters, such as `renew($1::text::bigint[])`. If the callers have
   * waited already, the deadline is theirs.
   */
  ask<Answer>(
    call: string,
    values: readonly (string | number)[],
    deadline?: number,
  ): Promise<Answer> {
    const name = this.#prepares ? `${this.#schema}.${call.slice(0, call.indexOf('('))}` : undefined
    const text = `select ${this.#schema}.${call}::text`
    const answer = this.#repeat(text, values.map(String), name) as Promise<Answer>
    return this.#within(answer, deadline)
  }

  /** A whole statement. */
  run(text: string, values: readonly (string | number)[]): Promise<unknown> {
    return this.#within(this.#repeat(text, values.map(String)))
  }

  async #repeat(text: string, values: string[], name?: string): Promise<unknown> {
    for (let conflicts = 0; ; conflicts++) {
      try {
        const answer = await this.#connection.ask(text, values, name)
        return typeof answer === 'string' && answer !== '' ? JSON.parse(answer) : undefined
      } catch (error) {
        if (isConflict(error) && conflicts < CONFLICTS_MAX) continue
        if (isLost(error)) this.onFailure()
        throw faultOf(error)
      }
    }
  }

  #within<Answer>(
    answer: Promise<Answer>,
    deadline = this.#clock.now() + this.#timeout,
  ): Promise<Answer> {
    return withTimeout(this.#clock, deadline, answer, () => {
      this.onFailure()
      return unanswered(this.#timeout)
    })
  }
}
