import { invalid, show } from '../../../port/index.ts'

/** The value of an attribute, as in `memory: 80` or `model: 'H100'`. */
export type Attribute = string | number | boolean

export type Attributes = Readonly<Record<string, Attribute>>

/** Conditions on one attribute. All that are given must hold. */
export interface Demand {
  readonly is?: Attribute | undefined
  readonly not?: Attribute | undefined
  readonly atLeast?: number | undefined
  readonly atMost?: number | undefined
  readonly above?: number | undefined
  readonly below?: number | undefined
  readonly oneOf?: readonly Attribute[] | undefined
}

/** `{ memory: { atLeast: 40 }, model: 'H100' }`, or as a string: `memory >= 40, model = H100`. */
export type Where = string | Readonly<Record<string, Attribute | Demand>>

/** One condition as stored. A resource without the attribute fails all but `!=`. */
export interface Condition {
  readonly attribute: string
  readonly is: Comparison
  readonly to: Attribute | readonly Attribute[]
}

export type Comparison = '=' | '!=' | '>=' | '<=' | '>' | '<' | 'in'

const WORDS = {
  is: '=',
  not: '!=',
  atLeast: '>=',
  atMost: '<=',
  above: '>',
  below: '<',
  oneOf: 'in',
} as const satisfies Record<keyof Demand, Comparison>

const CONDITIONS_MAX = 32
const FORM = /^([\w.-]+)\s*(>=|<=|!=|==?|>|<)\s*(?:'([^']*)'|"([^"]*)"|([\w.:+-]+))$/

export function conditionsOf(where: Where | undefined): readonly Condition[] {
  if (where === undefined) return []
  const conditions = typeof where === 'string' ? fromString(where) : fromObject(where)
  if (conditions.length <= CONDITIONS_MAX) return conditions
  throw invalid(`where has ${conditions.length} conditions, and the limit is ${CONDITIONS_MAX}`)
}

export function meets(attributes: Attributes, conditions: readonly Condition[]): boolean {
  return conditions.every((condition) => meetsOne(attributes[condition.attribute], condition))
}

export function conditionText({ attribute, is, to }: Condition): string {
  const value = Array.isArray(to) ? `(${to.join(', ')})` : String(to)
  return `${attribute} ${is} ${value}`
}

function meetsOne(has: Attribute | undefined, { is, to }: Condition): boolean {
  if (is === '=') return has === to
  if (is === '!=') return has !== to
  if (is === 'in') return Array.isArray(to) && to.includes(has)
  if (typeof has !== 'number' || typeof to !== 'number') return false
  if (is === '>=') return has >= to
  if (is === '<=') return has <= to
  return is === '>' ? has > to : has < to
}

function fromString(where: string): Condition[] {
  return where.split(/\s*(?:,|&&|\band\b)\s*/).map((part) => {
    const found = FORM.exec(part.trim())
    if (found === null) {
      throw invalid(
        `where has ${show(part)}: write conditions as 'memory >= 40, model = H100', with =, !=, >=, <=, > or <`,
      )
    }
    const [, attribute, sign, single, double, bare] = found
    const is = (sign === '==' ? '=' : sign) as Comparison
    const to = single ?? double ?? literal(bare!)
    return checked({ attribute: attribute!, is, to }, part)
  })
}

function literal(word: string): Attribute {
  if (word === 'true' || word === 'false') return word === 'true'
  const number = Number(word)
  return Number.isFinite(number) ? number : word
}

function fromObject(where: Exclude<Where, string>): Condition[] {
  if (typeof where !== 'object' || where === null) {
    throw invalid(
      `where is ${show(where)}: give a string such as 'memory >= 40' or an object such as { memory: { atLeast: 40 } }`,
    )
  }
  return Object.entries(where).flatMap(([attribute, demand]) => {
    if (typeof demand !== 'object' || demand === null) {
      return [checked({ attribute, is: '=', to: demand }, attribute)]
    }
    return Object.entries(demand).flatMap(([word, to]) => {
      if (to === undefined) return []
      if (!Object.hasOwn(WORDS, word)) {
        throw invalid(
          `where.${attribute} has ${show(word)}: it must be one of ${Object.keys(WORDS).join(', ')}`,
        )
      }
      const is = WORDS[word as keyof Demand]
      return [checked({ attribute, is, to }, `${attribute}.${word}`)]
    })
  })
}

function checked(condition: Condition, what: string): Condition {
  const { is, to } = condition
  if (is === 'in') {
    if (Array.isArray(to) && to.every(isAttribute)) return condition
    throw invalid(`where.${what} is ${show(to)}: give an array of strings, numbers or booleans`)
  }
  if (is === '=' || is === '!=') {
    if (isAttribute(to)) return condition
    throw invalid(`where.${what} is ${show(to)}: give a string, a number or a boolean`)
  }
  if (typeof to === 'number' && !Number.isNaN(to)) return condition
  throw invalid(`where ${show(what)} compares with ${show(to)}: ${is} needs a number`)
}

export function isAttribute(value: unknown): value is Attribute {
  if (typeof value === 'number') return Number.isFinite(value)
  return typeof value === 'string' || typeof value === 'boolean'
}
