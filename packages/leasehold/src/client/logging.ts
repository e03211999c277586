import { formatDuration, invalid, show } from '../port/index.ts'
import type { ClientEvents, Emitter } from './emitter.ts'

/** A logger of pino's shape: what is known as fields first, a sentence for people second. */
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
 * Writes down what a client tells: what needs a look as `warn`, what is worth knowing as `info`, and
 * everyday comings and goings as `debug`. Renewals are left out: they would drown the rest.
 * Keys, tokens and lease ids are written, values are not: they are the user's own.
 */
export function logTo(logger: Logger, events: Emitter<ClientEvents>): void {
  events.on('leased', (news) => logger.debug(news, 'lease granted'))
  events.on('acquired', (news) => logger.debug(news, 'held'))
  events.on('released', (news) => logger.debug(news, 'released'))
  events.on('lapsed', (news) =>
    logger.warn(news, 'lease could not be renewed in time: its grace runs'),
  )
  events.on('recovered', (news) => logger.info(news, 'lease renewed after all'))
  events.on('broken', (news) =>
    logger.warn(news, `lease was broken: it ends in ${formatDuration(news.remaining)}`),
  )
  events.on('lost', ({ lease, claims, error }) => {
    const { code, reason, by, why, message } = error
    const expected = reason === 'closed' || claims.length === 0
    logger[expected ? 'debug' : 'warn']({ lease, claims, code, reason, by, why }, message)
  })
  events.on('news', ({ level = 'info', detail, ...fields }) =>
    logger[level](fields, detail ?? `${fields.recipe}: ${fields.event}`),
  )
}
