import { formatDuration, invalid, show } from '../../port/index.ts'
import type { ClientEvents, Emitter } from './emitter.ts'

/** A logger with pino's interface: fields first, a sentence for people second. */
export interface Logger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

const LEVELS = ['debug', 'info', 'warn', 'error'] as const

export function checkLogger(logger: Logger | undefined): void {
  if (logger === undefined) return
  const missing =
    logger === null ? 'debug' : LEVELS.find((level) => typeof logger[level] !== 'function')
  if (missing === undefined) return
  throw invalid(
    `logger is ${show(logger)} and has no function ${missing}: give one of pino's shape, with ${LEVELS.join(', ')}`,
  )
}

/**
 * Logs the events of a client: what needs attention as `warn`, what is worth knowing as `info`, and
 * routine as `debug`. Renewals are not logged, because there are too many. Keys, tokens and lease ids
 * are logged; values are not, because they are the user's own.
 */
export function logTo(logger: Logger, events: Emitter<ClientEvents>): void {
  events.on('leased', (event) => logger.debug(event, 'lease granted'))
  events.on('acquired', (event) => logger.debug(event, 'held'))
  events.on('released', (event) => logger.debug(event, 'released'))
  events.on('lapsed', (event) =>
    logger.warn(event, 'lease could not be renewed in time: its grace runs'),
  )
  events.on('recovered', (event) => logger.info(event, 'lease renewed after all'))
  events.on('broken', (event) =>
    logger.warn(event, `lease was broken: it ends in ${formatDuration(event.remaining)}`),
  )
  events.on('lost', ({ lease, claims, error }) => {
    const { code, reason, by, why, message } = error
    logger.warn({ lease, claims, code, reason, by, why }, message)
  })
  events.on('closed', (event) => logger.debug(event, 'ended, because the client was closed'))
  events.on('recipe-event', ({ level = 'info', detail, ...fields }) =>
    logger[level](fields, detail ?? `${fields.recipe}: ${fields.event}`),
  )
}
