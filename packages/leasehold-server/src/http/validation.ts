import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import type { FastifySchemaCompiler } from 'fastify'
import type { Parameter, Schema } from './route.ts'
import { given } from './schemas.ts'

/** The schema of a query: what it does not name is refused, since a slip would go unseen. */
export function querySchema(query: Readonly<Record<string, Parameter>> = {}): Schema {
  const names = Object.keys(query)
  const properties = Object.fromEntries(names.map((name) => [name, query[name]!.schema]))
  return given(properties, ...names.filter((name) => query[name]!.required))
}

/**
 * A query is text, and is read as what its schema says; a body must be what it says already. That the
 * schemas are right is known: they are those of the description, which the tests look at.
 */
export function validators(): FastifySchemaCompiler<unknown> {
  const common = { allowUnionTypes: true, allErrors: false, meta: false, validateSchema: false }
  const lenient = new Ajv({ ...common, coerceTypes: 'array' })
  const strict = new Ajv(common)
  return ({ schema, httpPart }) =>
    whenAsked(httpPart === 'querystring' ? lenient : strict, schema as Schema)
}

/** Made by the first request that needs it: to make all of them takes a fifth of a server's start. */
function whenAsked(ajv: Ajv, schema: Schema) {
  let made: ValidateFunction | undefined
  const validate = (data: unknown): boolean => {
    made ??= ajv.compile(schema)
    const isValid = made(data)
    validate.errors = made.errors ?? null
    return isValid
  }
  validate.errors = null as ErrorObject[] | null
  return validate
}
