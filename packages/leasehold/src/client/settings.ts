import {
  type Clock,
  checkNames,
  type Duration,
  invalid,
  knownNames,
  milliseconds,
  positive,
  processName,
  type Random,
  show,
  systemClock,
  systemRandom,
} from '../port/index.ts'
import type { RemoteStoreOptions } from '../stores/remote/index.ts'
import { checkLogger, type Logger, type Telemetry } from './events/index.ts'
import type { Caution } from './leases/index.ts'
import { DEFAULT_TIMEOUT_MS, type TimeLimit } from './store-calls/index.ts'

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
  /** For a server's URL: ties leases to the connection; see `RemoteStoreOptions`. */
  readonly tied?: RemoteStoreOptions['tied']
  /** For a server's URL: headers of the request that opens the connection, for a proxy. */
  readonly headers?: RemoteStoreOptions['headers']
  /** For a server's URL with `https:`: options of Node's `tls.connect`, such as `ca`. */
  readonly tls?: RemoteStoreOptions['tls']
  /**
   * How long a caller waits for the store's answer to one call: 5 s if not given, or `callTimeout`
   * if that is longer. It does not include the time in a queue: see `wait`. For a URL it also limits
   * how long `open` tries to reach the store.
   */
  readonly timeout?: Duration | undefined
  /** After how long a call without an answer is sent again. 5 s if not given. */
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
  readonly limit: TimeLimit
  /** How long to try to reach a store that is opened by its URL. */
  readonly openTimeout: number
  readonly jitter: number
  /** What only a server needs. */
  readonly server: Pick<RemoteStoreOptions, 'accessToken' | 'tied' | 'headers' | 'tls'>
  readonly logger: Logger | undefined
  readonly telemetry: Telemetry | undefined
  readonly clock: Clock
  readonly random: Random
}

const HOLDER_MAX = 256

const CLIENT_OPTIONS = knownNames<ClientOptions>({
  holder: true,
  drift: true,
  margin: true,
  accessToken: true,
  tied: true,
  headers: true,
  tls: true,
  token: true,
  timeout: true,
  callTimeout: true,
  jitter: true,
  logger: true,
  telemetry: true,
  clock: true,
  random: true,
})

export function settingsOf(options: ClientOptions): Settings {
  if (typeof options !== 'object' || options === null) {
    throw invalid(`options is ${show(options)}: it must be an object`)
  }
  checkNames('open', options, CLIENT_OPTIONS)
  const { logger, telemetry, accessToken = options.token } = options
  checkLogger(logger)
  const { margin, clock = systemClock, random = systemRandom } = options
  const callTimeout = positive(options.callTimeout ?? DEFAULT_TIMEOUT_MS, 'callTimeout')
  const limit = clientLimit(options.timeout, callTimeout)
  return {
    holder: holderOf(options.holder, random),
    drift: fractionOf('drift', options.drift, 0.01),
    margin: margin === undefined ? undefined : finite('margin', margin),
    callTimeout,
    limit,
    openTimeout: options.timeout === undefined ? callTimeout : limit.ms,
    jitter: fractionOf('jitter', options.jitter, 0.1),
    server: { accessToken, tied: options.tied, headers: options.headers, tls: options.tls },
    logger,
    telemetry,
    clock,
    random,
  }
}

function holderOf(holder: string | undefined, random: Random): string {
  if (holder === undefined) return `${processName}:${random.id().slice(0, 8)}`
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

function clientLimit(timeout: Duration | undefined, callTimeout: number): TimeLimit {
  if (timeout !== undefined) return { ms: positive(timeout, 'timeout'), chosenBy: 'client' }
  return { ms: Math.max(DEFAULT_TIMEOUT_MS, callTimeout), chosenBy: 'default' }
}
