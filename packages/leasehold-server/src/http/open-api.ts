import { meaningOf, type ProblemCode, STATUS } from './problem.ts'
import type { Parameter, Route } from './route.ts'
import { named, SHARED } from './schemas.ts'

/** Problems that every route can tell. */
const ALWAYS = [400, 401, 403, 429, 503]

/** The description of all routes, as OpenAPI 3.1 has it, from what checks their requests. */
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
          description: 'A token of this server. None is needed while the server has none.',
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
    'A name for this request: sent again with the same, it is not carried out twice, and is answered as the first time.',
  schema: { type: 'string' },
}

function parameter(where: 'path' | 'query', name: string, part: Parameter): unknown {
  const { schema, about, required = false, example } = part
  return {
    name,
    in: where,
    required,
    description: about,
    schema,
    ...(example !== undefined && { example }),
  }
}

function problems(statuses: readonly number[]): Record<string, unknown> {
  const told = statuses.map((status) => {
    const content = { 'application/problem+json': { schema: named('Problem') } }
    return [status, { description: meaningsOf(status), content }]
  })
  return Object.fromEntries(told)
}

function meaningsOf(status: number): string {
  const codes = (Object.keys(STATUS) as ProblemCode[]).filter((code) => STATUS[code] === status)
  return codes.map((code) => `\`${code}\`: ${meaningOf(code)}`).join(' ')
}
