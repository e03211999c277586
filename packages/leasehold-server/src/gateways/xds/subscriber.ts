import { LeaseholdError } from 'leasehold/port'
import type { Principal } from '../../access/index.ts'
import type { Answers, Consumer } from './answers.ts'
import type { DiscoveryRequest } from './messages.ts'
import { ASSIGNMENT, CLUSTER, LISTENER } from './resources.ts'

/** The most resources that a consumer may ask for by name, of each type, and their characters. */
const NAMES_MAX = 1000
const NAMES_LENGTH_MAX = 100_000
const ZONE_LENGTH_MAX = 256
/** Of a refusal, which goes to the log. */
const REFUSAL_LENGTH_MAX = 500
const TYPES = [LISTENER, CLUSTER, ASSIGNMENT]

interface Subscription {
  /** `undefined` for all services. */
  readonly names: readonly string[] | undefined
  /** What the last response had, for those that ask for all. */
  sent: string
}

/**
 * One consumer of the state of the world. It gets each resource that it asks for, and assignments
 * again when they change. A resource that nobody registered is an assignment without endpoints:
 * calls then fail at once instead of after a timeout, and work as soon as an instance registers.
 */
export class Subscriber implements Consumer {
  readonly principal: Principal
  zone = ''
  readonly #answers: Answers
  readonly #write: (response: Buffer) => boolean
  readonly #subscriptions = new Map<string, Subscription>()
  /** What changed while the connection was full. */
  #missed: Set<string> | undefined

  /** `write` returns whether the connection takes more. */
  constructor(principal: Principal, answers: Answers, write: (response: Buffer) => boolean) {
    this.principal = principal
    this.#answers = answers
    this.#write = write
  }

  /** Returns why the consumer refused the last response, if it did. */
  onRequest({ node, type_url, resource_names, error_detail }: DiscoveryRequest) {
    this.zone = checkZone(node?.locality?.zone) || this.zone
    if (!TYPES.includes(type_url)) return undefined
    const names = checkNames(resource_names)
    const known = this.#subscriptions.get(type_url)
    // The acknowledgement of a response repeats the names.
    const isKnown = known !== undefined && isSame(known.names ?? [], names)
    const isAll = names.length === 0 && type_url === CLUSTER && (known?.names?.length ?? 0) === 0
    if (!isKnown) {
      this.#subscriptions.set(type_url, { names: isAll ? undefined : names, sent: '' })
      this.#send(type_url)
    }
    return error_detail?.message.slice(0, REFUSAL_LENGTH_MAX)
  }

  /** Sends what changed to the consumer, if it asked for it. */
  onChange(changed: ReadonlySet<string>): void {
    const names = this.#subscriptions.get(ASSIGNMENT)?.names?.filter((name) => changed.has(name))
    if (this.#missed !== undefined) {
      for (const name of names ?? []) this.#missed.add(name)
      return
    }
    const clusters = this.#subscriptions.get(CLUSTER)
    if (clusters !== undefined && clusters.names === undefined) this.#send(CLUSTER)
    if (names !== undefined && names.length > 0) this.#respond(ASSIGNMENT, names)
  }

  /** Sends everything again, as the consumer may see it now. */
  onRightsChange(): void {
    this.onChange(new Set(this.#subscriptions.get(ASSIGNMENT)?.names))
  }

  /** The connection takes more again. */
  onDrain(): void {
    const missed = this.#missed
    this.#missed = undefined
    if (missed !== undefined) this.onChange(missed)
  }

  #send(type: string): void {
    const subscription = this.#subscriptions.get(type)!
    if (subscription.names !== undefined) {
      this.#respond(type, subscription.names)
      return
    }
    const names = this.#answers.services(this)
    const sent = names.join('\n')
    if (sent === subscription.sent && sent !== '') return
    subscription.sent = sent
    this.#respond(type, names)
  }

  #respond(type: string, names: readonly string[]): void {
    if (!this.#write(this.#answers.response(this, type, names))) this.#missed ??= new Set()
  }
}

/** The names without repetitions, in order. Refuses too many of them. */
export function checkNames(given: readonly string[]): readonly string[] {
  const characters = given.reduce((sum, name) => sum + name.length, 0)
  if (given.length <= NAMES_MAX && characters <= NAMES_LENGTH_MAX) return [...new Set(given)].sort()
  throw new LeaseholdError(
    'limit-exceeded',
    `${given.length} resources with ${characters} characters are too many: ask for at most ${NAMES_MAX} with ${NAMES_LENGTH_MAX}`,
  )
}

/** Each stream keeps it, and each answer has it. */
export function checkZone(given: unknown): string {
  if (typeof given !== 'string') return ''
  if (given.length <= ZONE_LENGTH_MAX) return given
  throw new LeaseholdError(
    'limit-exceeded',
    `the zone has ${given.length} characters: use one with at most ${ZONE_LENGTH_MAX}`,
  )
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((name, at) => name === b[at])
}
