import {
  type Duration,
  formatDuration,
  invalid,
  type Key,
  milliseconds,
  show,
} from '../../../port/index.ts'
import { type Attribute, type Attributes, isAttribute } from './where.ts'

/** One thing to be had: a name, how many shares it can be had in, and what it says of itself. */
export interface Resource {
  readonly name: string
  /** In how many equal shares it can be taken; 1 if not given. Taken as a whole unless asked. */
  readonly shares?: number | undefined
  /** Anything that requests can ask for, such as `memory: 80` or `model: 'H100'`. */
  readonly [attribute: string]: Attribute | undefined
}

/** What a pool is. Published in the store, so that all processes go by the same. */
export interface PoolDefinition {
  /** In the order in which they are given out: put first what is asked for least. */
  readonly resources: readonly Resource[]
  /**
   * Who may take, and how much of the pool each deserves when all want it. Without this anybody may,
   * each tenant counting the same.
   */
  readonly tenants?: Readonly<Record<string, { readonly weight?: number | undefined }>> | undefined
  /** After so long what a tenant has used counts half. A day if not given. */
  readonly halfLife?: Duration | undefined
  /** How long before a permit is taken from its holder by force it is told. 30 s if not given. */
  readonly notice?: Duration | undefined
  /** No permit is held for longer than this, extended or not. No limit if not given. */
  readonly maxHold?: Duration | undefined
}

/** A definition as it is published: whole, checked, and the same text for the same pool. */
export interface Definition {
  readonly resources: readonly {
    readonly name: string
    readonly shares: number
    readonly attributes: Attributes
  }[]
  /** The weight of each tenant, where there is a list of them. */
  readonly tenants?: Readonly<Record<string, number>>
  readonly halfLife: number
  readonly notice: number
  /** 0 for no limit, since a text cannot say infinite. */
  readonly maxHold: number
}

export const POOL_PREFIX = 'pool/'
export const NAME_MAX = 100
const NAME = /^[\w.:@-]{1,100}$/
const RESOURCES_MAX = 1000
const SHARES_MAX = 100
const TENANTS_MAX = 256
const TEXT_MAX = 60_000
const HALF_LIFE_MS = 86_400_000
const NOTICE_MS = 30_000

/** Names that become part of a key: without `/`, so that no two pools can meet. */
export function checkName(what: string, name: unknown): asserts name is string {
  if (typeof name === 'string' && NAME.test(name)) return
  throw invalid(
    `${what} is ${show(name)}: give a name of letters, digits and . _ : @ -, at most ${NAME_MAX} of them`,
  )
}

/** A name that people give to tenants and kinds of work: any text that is not too long. */
export function checkLabel(what: string, word: unknown): asserts word is string {
  if (typeof word === 'string' && word !== '' && word.length <= NAME_MAX) return
  throw invalid(`${what} is ${show(word)}: give a text of 1 to ${NAME_MAX} characters`)
}

export function definitionOf(given: PoolDefinition): Definition {
  if (typeof given !== 'object' || given === null || !Array.isArray(given.resources)) {
    throw invalid(`a pool is defined by { resources: [{ name: 'gpu-0', … }, …] }`)
  }
  const { resources } = given
  if (resources.length === 0 || resources.length > RESOURCES_MAX) {
    throw invalid(
      `the pool has ${resources.length} resources: it needs at least one and at most ${RESOURCES_MAX}`,
    )
  }
  const names = new Set<string>()
  const checked = resources.map((resource) => checkedResource(resource, names))
  const halfLife = durationOf(given.halfLife, 'halfLife', HALF_LIFE_MS)
  const notice = durationOf(given.notice, 'notice', NOTICE_MS)
  if (halfLife <= 0 || halfLife === Infinity) {
    throw invalid(`halfLife is ${formatDuration(halfLife)}: it must be more than 0 and finite`)
  }
  if (notice === Infinity) throw invalid(`notice is infinite: it must be finite`)
  const maxHold = durationOf(given.maxHold, 'maxHold', Infinity)
  const definition: Definition = {
    resources: checked,
    ...(given.tenants === undefined ? {} : { tenants: checkedTenants(given.tenants) }),
    halfLife,
    notice,
    maxHold: maxHold === Infinity ? 0 : maxHold,
  }
  const { length } = definitionJson(definition)
  if (length <= TEXT_MAX) return definition
  throw invalid(
    `the pool's definition has ${length} characters: at most ${TEXT_MAX} can be published, so give fewer resources or shorter attributes`,
  )
}

export function definitionJson(definition: Definition): string {
  return JSON.stringify(definition)
}

/** What was published, or `undefined` where that cannot be read. */
export function definitionFrom(text: string | undefined): Definition | undefined {
  try {
    const read = JSON.parse(text ?? '') as Definition
    return Array.isArray(read?.resources) ? read : undefined
  } catch {
    return undefined
  }
}

export function weightOf(definition: Definition, tenant: string): number | undefined {
  if (definition.tenants === undefined) return 1
  return Object.hasOwn(definition.tenants, tenant) ? definition.tenants[tenant] : undefined
}

/**
 * The keys of a resource, one for each share. The store counts claims, not sizes: with a key for
 * each share it is the store that never lets more be held than there is, whatever anyone believes,
 * several shares are taken in one step, and each has a fencing token of its own.
 */
export function unitsOf(
  pool: string,
  resource: { readonly name: string; readonly shares: number },
): readonly Key[] {
  const key = `${POOL_PREFIX}${pool}/r/${resource.name}`
  if (resource.shares === 1) return [key]
  return Array.from({ length: resource.shares }, (_, share) => `${key}/${share}`)
}

function checkedResource(resource: Resource, names: Set<string>): Definition['resources'][number] {
  if (typeof resource !== 'object' || resource === null) {
    throw invalid(`a resource is ${show(resource)}: give an object such as { name: 'gpu-0' }`)
  }
  const { name, shares = 1, ...rest } = resource
  checkName("a resource's name", name)
  if (names.has(name)) throw invalid(`two resources are named ${show(name)}: name each once`)
  names.add(name)
  if (!Number.isInteger(shares) || shares < 1 || shares > SHARES_MAX) {
    throw invalid(
      `${show(name)} has shares ${show(shares)}: give a whole number from 1 to ${SHARES_MAX}`,
    )
  }
  const attributes: Record<string, Attribute> = {}
  for (const attribute of Object.keys(rest).sort()) {
    const value = rest[attribute]
    if (value === undefined) continue
    if (!isAttribute(value)) {
      throw invalid(
        `${show(name)} has ${attribute} ${show(value)}: an attribute is a text, a number or a boolean`,
      )
    }
    attributes[attribute] = value
  }
  return { name, shares, attributes }
}

function checkedTenants(tenants: NonNullable<PoolDefinition['tenants']>): Record<string, number> {
  const names = Object.keys(tenants).sort()
  if (names.length === 0 || names.length > TENANTS_MAX) {
    throw invalid(
      `the pool has ${names.length} tenants: list at least one and at most ${TENANTS_MAX}, or leave 'tenants' out to admit anybody`,
    )
  }
  const weights: Record<string, number> = {}
  for (const name of names) {
    checkLabel("a tenant's name", name)
    const weight = tenants[name]?.weight ?? 1
    if (!(weight > 0 && weight <= 1e6)) {
      throw invalid(
        `tenant ${show(name)} has weight ${show(weight)}: give a number more than 0 and at most 1000000`,
      )
    }
    weights[name] = weight
  }
  return weights
}

function durationOf(value: Duration | undefined, name: string, otherwise: number): number {
  return value === undefined ? otherwise : milliseconds(value, name)
}
