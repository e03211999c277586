import { meaningOf, type ProblemCode, STATUS, statusesOf } from '../responses/problem.ts'
import type { Parameter, Route } from '../route.ts'
import { named, SHARED } from '../routes/schemas.ts'

/** The problems of every route. */
const ALWAYS = [400, 401, 403, 429, 503, 504]

/** The OpenAPI 3.1 description of all routes, from the schemas that check their requests. */
export function openApi(routes: readonly Route[], version: string): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of routes) {
    paths[route.path] ??= {}
    paths[route.path]![route.method.toLowerCase()] = operation(route)
  }
  const groups = [...new Set(routes.map(({ group }) => group))]
  return {
    openapi: '3.1.0',
    info: {
      title: 'Leasehold',
      version,
      description:
        'Time-bound ownership: locks with fencing tokens, leases, a registry, pools and sessions.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{}, { token: [] }],
    tags: groups.map((name) => ({ name })),
    paths,
    components: {
      schemas: SHARED,
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description:
            'An access token of this server. It is not needed while the server has no access tokens.',
        },
      },
    },
  }
}

function operation(route: Route): Record<string, unknown> {
  const { id, group, title, about, params = {}, query = {}, body, answer, repeatable } = route
  const type = answer.type ?? 'application/json'
  const parameters = [
    ...Object.entries(params).map(([name, part]) => parameter('path', name, part)),
    ...Object.entries(query).map(([name, part]) => parameter('query', name, part)),
    ...(repeatable ? [REPEATS] : []),
  ]
  return {
    operationId: id,
    tags: [group],
    summary: title,
    ...(about && { description: about }),
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: body.schema, example: body.example } },
      },
    }),
    responses: {
      [answer.status]: {
        description: answer.about,
        content: { [type]: { schema: answer.schema } },
      },
      ...problems([...ALWAYS, ...(route.problems ?? []), ...(repeatable ? [422] : [])]),
    },
  }
}

const REPEATS = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'An idempotency key for this request. A request with the same key is not performed again and gets the same answer.',
  schema: { type: 'string' },
}

function parameter(where: 'path' | 'query', name: string, part: Parameter): unknown {
  const { schema, about, required = false, example } = part
  return { name, in: where, required, description: about, schema, example }
}

function problems(statuses: readonly number[]): Record<string, unknown> {
  const described = statuses.map((status) => {
    const content = { 'application/problem+json': { schema: named('Problem') } }
    return [status, { description: meaningsOf(status), content }]
  })
  return Object.fromEntries(described)
}

function meaningsOf(status: number): string {
  const codes = (Object.keys(STATUS) as ProblemCode[]).filter((code) =>
    statusesOf(code).includes(status),
  )
  return codes.map((code) => `\`${code}\`: ${meaningOf(code)}`).join(' ')
}
