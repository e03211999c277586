import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { notFound, type Problem, problemOf, refusedByFramework } from './problem.ts'
import { withWholeTimes } from './whole-times.ts'

/** Ends with a newline, so that a terminal prompt starts on a new line. */
export function asJson(answer: unknown): string {
  return `${JSON.stringify(withWholeTimes(answer))}\n`
}

/** Answers with a problem (RFC 9457). */
export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  const { status } = problem
  if (status === 401) reply.header('www-authenticate', 'Bearer')
  if (status === 429 || status === 503) reply.header('retry-after', '1')
  return reply.code(status).type('application/problem+json').send(asJson(problem))
}

/** Answers an unknown path. */
export function sendNotFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  reply.header('x-content-type-options', 'nosniff')
  return sendProblem(reply, notFound(request.method, request.url.split('?', 1)[0]!))
}

/** The problem for any error, of the server or of the framework. */
export function problemFor(thrown: unknown): Problem {
  const error = thrown as Partial<FastifyError>
  if (error?.validation !== undefined) {
    return refusedByFramework(400, messageOf(error.validation, error.validationContext))
  }
  const status = error?.statusCode
  const isFramework = typeof error?.code === 'string' && error.code.startsWith('FST_')
  if (!isFramework || status === undefined || status >= 500) return problemOf(thrown)
  const fix = status === 415 ? '; send JSON with the header content-type: application/json' : ''
  return refusedByFramework(status, `${error.message}${fix}`)
}

/** Answers a request that the framework refuses before it finds a route. */
export function refuseBadRequest(
  error: FastifyError,
  _request: FastifyRequest,
  reply: FastifyReply,
): void {
  sendProblem(reply, refusedByFramework(error.statusCode ?? 400, error.message))
}

function messageOf(
  [first]: NonNullable<FastifyError['validation']>,
  context: FastifyError['validationContext'],
): string {
  const place = context === 'querystring' ? 'query' : (context ?? 'request')
  const unknown = first?.params['additionalProperty']
  const allowed = first?.params['allowedValues']
  const more =
    unknown !== undefined
      ? `: ${JSON.stringify(unknown)} is unknown`
      : Array.isArray(allowed)
        ? `: ${allowed.join(', ')}`
        : ''
  return `${place}${first?.instancePath ?? ''} ${first?.message ?? 'is wrong'}${more}; see /docs`
}
