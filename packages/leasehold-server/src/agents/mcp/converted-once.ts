import type { StandardSchemaWithJSON } from '@modelcontextprotocol/server'
import type { z } from 'zod'

/**
 * The same schema, whose conversion to JSON Schema is kept. Over HTTP each request has a server object
 * of its own, and the SDK converts the schemas of the called tool for each: 1.5 ms without this.
 */
export function convertedOnce<Schema extends z.ZodType>(
  schema: Schema,
): StandardSchemaWithJSON<z.input<Schema>, z.output<Schema>> {
  const standard = schema['~standard']
  const converted = new Map<string, Record<string, unknown>>()
  const convert =
    (direction: 'input' | 'output') =>
    (options: { readonly target: 'draft-2020-12' }): Record<string, unknown> => {
      const name = `${direction} ${options.target}`
      const known = converted.get(name) ?? standard.jsonSchema[direction](options)
      converted.set(name, known)
      return known
    }
  return {
    '~standard': {
      ...standard,
      jsonSchema: { input: convert('input'), output: convert('output') },
    } as StandardSchemaWithJSON<z.input<Schema>, z.output<Schema>>['~standard'],
  }
}
