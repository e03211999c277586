import { Ajv } from 'ajv'
import type { FastifySchemaCompiler } from 'fastify'
import type { Parameter, Schema } from './route.ts'
import { given } from './schemas.ts'

/** The schema of a query: what it does not name is refused, since a slip would go unseen. */
export function querySchema(query: Readonly<Record<string, Parameter>> = {}): Schema {
  const names = Object.keys(query)
  const properties = Object.fromEntries(names.map((name) => [name, query[name]!.schema]))
  return given(properties, ...names.filter((name) => query[name]!.required))
}

/** A query is text, and is read as what its schema says; a body must be what it says already. */
export function validators(): FastifySchemaCompiler<unknown> {
  const common = { allowUnionTypes: true, allErrors: false }
  const lenient = new Ajv({ ...common, coerceTypes: 'array' })
  const strict = new Ajv(common)
  return ({ schema, httpPart }) =>
    (httpPart === 'querystring' ? lenient : strict).compile(schema as Schema)
}
