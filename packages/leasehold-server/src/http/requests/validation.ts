import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import type { FastifySchemaCompiler } from 'fastify'
import type { Parameter, Schema } from '../route.ts'
import { given } from '../routes/schemas.ts'

/** The schema of a query. Unknown names are refused, because a typo must not be ignored. */
export function querySchema(query: Readonly<Record<string, Parameter>> = {}): Schema {
  const names = Object.keys(query)
  const properties = Object.fromEntries(names.map((name) => [name, query[name]!.schema]))
  return given(properties, ...names.filter((name) => query[name]!.required))
}

/**
 * Strings in a query are converted to the types of the schema; a body must have these types. The
 * schemas themselves are not validated here: tests check them as part of the description.
 */
export function validators(): FastifySchemaCompiler<unknown> {
  const common = { allowUnionTypes: true, allErrors: false, meta: false, validateSchema: false }
  const lenient = new Ajv({ ...common, coerceTypes: 'array' })
  const strict = new Ajv(common)
  return ({ schema, httpPart }) =>
    lazyValidator(httpPart === 'querystring' ? lenient : strict, schema as Schema)
}

/** Compiled by the first request that needs it: compiling all takes 1/5 of the server's start. */
function lazyValidator(ajv: Ajv, schema: Schema) {
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
