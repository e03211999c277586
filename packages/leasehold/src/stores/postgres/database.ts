import type { Clock } from '../../port/index.ts'
import { answerBy, unanswered } from './call-deadlines.ts'
import type { Connection } from './client.ts'
import { faultOf, isConflict, isLost } from './faults.ts'
import type { Settings } from './options.ts'

/** A statement that was rolled back in favour of others is sent again so often. */
const CONFLICTS_MAX = 5

/**
 * Calls the functions of the schema, one statement each: what they answer is JSON. None takes longer
 * than the time-out, after which its outcome is unknown.
 */
export class Database {
  readonly #connection: Connection
  readonly #schema: string
  readonly #clock: Clock
  readonly #timeout: number
  /** Where notifications are heard on this very client, no pooler is in between. */
  readonly #prepares: boolean
  /** Called when the connection failed, which is when a line that listens may be broken too. */
  trouble: () => void = () => {}

  constructor({ connection, line, schema, clock, timeout }: Settings) {
    this.#prepares = line === connection
    this.#connection = connection
    this.#schema = schema
    this.#clock = clock
    this.#timeout = timeout
  }

  /**
   * `call` names a function with its parameters, as in `renew($1::text::bigint[])`. Where those who
   * asked have waited already, the deadline is theirs.
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
        if (isLost(error)) this.trouble()
        throw faultOf(error)
      }
    }
  }

  #within<Answer>(
    answer: Promise<Answer>,
    deadline = this.#clock.now() + this.#timeout,
  ): Promise<Answer> {
    return answerBy(this.#clock, deadline, answer, () => {
      this.trouble()
      return unanswered(this.#timeout)
    })
  }
}
