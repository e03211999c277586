import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { nothingAt, type Problem, problemOf, refusedByFramework } from './problem.ts'

/** Ends with a newline, so that in a terminal what follows begins on a line of its own. */
export function asJson(answer: unknown): string {
  return `${JSON.stringify(answer)}\n`
}

/** Answers with a problem, as RFC 9457 has it. */
export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  const { status } = problem
  if (status === 401) reply.header('www-authenticate', 'Bearer')
  if (status === 429 || status === 503) reply.header('retry-after', '1')
  return reply.code(status).type('application/problem+json').send(asJson(problem))
}

/** For a path that leads nowhere. */
export function answerNothing(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  reply.header('x-content-type-options', 'nosniff')
  return sendProblem(reply, nothingAt(request.method, request.url.split('?', 1)[0]!))
}

/** The problem that stands for whatever was thrown, by us or by the framework. */
export function problemFor(thrown: unknown): Problem {
  const error = thrown as Partial<FastifyError>
  if (error?.validation !== undefined) {
    return refusedByFramework(400, complaintOf(error.validation, error.validationContext))
  }
  const status = error?.statusCode
  const isFramework = typeof error?.code === 'string' && error.code.startsWith('FST_')
  if (!isFramework || status === undefined || status >= 500) return problemOf(thrown)
  const fix = status === 415 ? '; send JSON, with the header content-type: application/json' : ''
  return refusedByFramework(status, `${error.message}${fix}`)
}

/** For what the framework refuses before it has found a route. */
export function refuseBadRequest(
  error: FastifyError,
  _request: FastifyRequest,
  reply: FastifyReply,
): void {
  sendProblem(reply, refusedByFramework(error.statusCode ?? 400, error.message))
}

function complaintOf(
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
