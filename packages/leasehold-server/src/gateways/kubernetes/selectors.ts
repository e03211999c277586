import type { StoredMetadata } from './lease-object.ts'
import { badRequest } from './status.ts'

/** Whether an object is selected. */
export type Selector = (metadata: StoredMetadata) => boolean

const FIELDS = ['metadata.name', 'metadata.namespace'] as const
const EQUALITY = /^([^=!]+?)\s*(==|=|!=)\s*([^=!]*)$/
const SET = /^(\S+)\s+(in|notin)\s+\(([^()]*)\)$/
const PRESENCE = /^(!?)([^\s=!()]+)$/
const LENGTH_MAX = 4096
/** Every object of a list and every change of a watch is compared with each term. */
const TERMS_MAX = 100

/** The objects that the query of a list or watch selects. */
export function selectorOf(fields: string | undefined, labels: string | undefined): Selector {
  const all = [...termsOf(fields).map(fieldTerm), ...termsOf(labels).map(labelTerm)]
  return (metadata) => all.every((selects) => selects(metadata))
}

/** The name that a selector of fields demands, so that only one key has to be read. */
export function nameIn(fields: string | undefined): string | undefined {
  return /^metadata\.name==?([^,=]+)$/.exec(fields ?? '')?.[1]
}

/** Splits at the commas that are not inside a list of values. */
function termsOf(selector = ''): readonly string[] {
  if (selector.length > LENGTH_MAX) {
    throw badRequest(`a selector has at most ${LENGTH_MAX} characters`)
  }
  const terms = selector
    .split(/,(?![^(]*\))/)
    .map((term) => term.trim())
    .filter((term) => term !== '')
  if (terms.length <= TERMS_MAX) return terms
  throw badRequest(`a selector has at most ${TERMS_MAX} conditions, and this one ${terms.length}`)
}

function fieldTerm(term: string): Selector {
  const [, field, operator, value] = EQUALITY.exec(term) ?? []
  const known = FIELDS.find((each) => each === field)
  if (known === undefined) {
    throw badRequest(
      `the field selector "${shown(term)}" is not supported: use ${FIELDS.join(', ')}`,
    )
  }
  const of = (metadata: StoredMetadata) =>
    known === 'metadata.name' ? metadata.name : metadata.namespace
  return (metadata) => (of(metadata) === value) === (operator !== '!=')
}

function labelTerm(term: string): Selector {
  const [, key, operator, value] = EQUALITY.exec(term) ?? []
  if (key !== undefined) {
    return ({ labels }) => (own(labels, key) === value) === (operator !== '!=')
  }
  const [, name, among, list = ''] = SET.exec(term) ?? []
  if (name !== undefined) {
    const values = list.split(',').map((each) => each.trim())
    return ({ labels }) => {
      const label = own(labels, name)
      return (label !== undefined && values.includes(label)) === (among === 'in')
    }
  }
  const [, not, label] = PRESENCE.exec(term) ?? []
  if (label === undefined) throw badRequest(`the label selector "${shown(term)}" is malformed`)
  return ({ labels }) => (own(labels, label) !== undefined) === (not === '')
}

function own(labels: StoredMetadata['labels'], name: string): string | undefined {
  return labels !== undefined && Object.hasOwn(labels, name) ? labels[name] : undefined
}

function shown(term: string): string {
  return term.slice(0, 100)
}
