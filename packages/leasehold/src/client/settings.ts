import { hostname } from 'node:os'
import {
  type Clock,
  type Duration,
  invalid,
  milliseconds,
  type Random,
  show,
  systemClock,
  systemRandom,
} from '../port/index.ts'
import { checkLogger, type Logger, type Telemetry } from './events/index.ts'
import type { Caution } from './leases/index.ts'

export interface ClientOptions {
  /** The holder's name for people and logs. Host name, process id and a random part by default. */
  readonly holder?: string | undefined
  /**
   * How much faster the store's clock may run than this machine's, as a fraction; 0.01 if not
   * given. Real clocks stay within 0.0005; the rest is for virtual machines. If the true drift is
   * greater, two holders can overlap, and only the fencing token separates them.
   */
  readonly drift?: number | undefined
  /** How early the client stops relying on a lease. 50 ms or 5 % of the ttl if not given. */
  readonly margin?: Duration | undefined
  /** For a server's URL: the access token that `leasehold access-token create` printed. */
  readonly accessToken?: string | undefined
  /** @deprecated Use `accessToken`. */
  readonly token?: string | undefined
  /** The timeout of one call to the store, which is then repeated or fails. 5 s if not given. */
  readonly callTimeout?: Duration | undefined
  /** How much earlier renewals come at random, as a fraction, to spread load. 0.1 if not given. */
  readonly jitter?: number | undefined
  /** The logger for events: pino, or anything of its shape. No log if not given. */
  readonly logger?: Logger | undefined
  /** The telemetry: `openTelemetry(api)`. No measurements if not given. */
  readonly telemetry?: Telemetry | undefined
  /** Time and randomness, for tests. The machine's if not given. */
  readonly clock?: Clock | undefined
  readonly random?: Random | undefined
}

export interface Settings extends Caution {
  readonly holder: string
  readonly callTimeout: number
  readonly jitter: number
  readonly accessToken: string | undefined
  readonly logger: Logger | undefined
  readonly telemetry: Telemetry | undefined
  readonly clock: Clock
  readonly random: Random
}

const HOLDER_MAX = 256

export function settingsOf(options: ClientOptions): Settings {
  if (typeof options !== 'object' || options === null) {
    throw invalid(`options is ${show(options)}: it must be an object`)
  }
  const { logger, telemetry, accessToken = options.token } = options
  checkLogger(logger)
  const { margin, callTimeout, clock = systemClock, random = systemRandom } = options
  return {
    holder: holderOf(options.holder, random),
    drift: fractionOf('drift', options.drift, 0.01),
    margin: margin === undefined ? undefined : finite('margin', margin),
    callTimeout: callTimeout === undefined ? 5000 : positive('callTimeout', callTimeout),
    jitter: fractionOf('jitter', options.jitter, 0.1),
    accessToken,
    logger,
    telemetry,
    clock,
    random,
  }
}

function holderOf(holder: string | undefined, random: Random): string {
  if (holder === undefined) return `${hostname()}:${process.pid}:${random.id().slice(0, 8)}`
  if (typeof holder === 'string' && holder.length > 0 && holder.length <= HOLDER_MAX) return holder
  throw invalid(
    `holder is ${show(holder)}: it must be a string of 1 to ${HOLDER_MAX} characters that names this holder`,
  )
}

function fractionOf(name: string, value: number | undefined, otherwise: number): number {
  if (value === undefined) return otherwise
  if (typeof value === 'number' && value >= 0 && value <= 0.5) return value
  throw invalid(
    `${name} is ${show(value)}: it must be a number from 0 to 0.5, such as ${otherwise}`,
  )
}

function finite(name: string, value: Duration): number {
  const ms = milliseconds(value, name)
  if (ms < Infinity) return ms
  throw invalid(`${name} is infinite: give a finite duration, such as '50ms'`)
}

function positive(name: string, value: Duration): number {
  const ms = finite(name, value)
  if (ms > 0) return ms
  throw invalid(`${name} is ${show(value)}: it must be more than 0, such as '5s'`)
}
