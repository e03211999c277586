import {
  checkNames,
  type Duration,
  formatDuration,
  invalid,
  type Key,
  knownNames,
  milliseconds,
  show,
} from '../../../port/index.ts'
import { type Attribute, type Attributes, isAttribute } from './where.ts'

/** One resource of a pool: its name, its number of shares, and its attributes. */
export interface Resource {
  readonly name: string
  /** The number of equal shares that can be taken separately. Default: 1. */
  readonly shares?: number | undefined
  /** Attributes that requests can ask for, such as `memory: 80` or `model: 'H100'`. */
  readonly [attribute: string]: Attribute | undefined
}

/** The definition of a pool. It is published in the store, so all processes use the same one. */
export interface PoolDefinition {
  /** Resources are handed out in this order. Put the least wanted first. */
  readonly resources: readonly Resource[]
  /** The tenants, with their weights. By default, any tenant may take, with equal weight. */
  readonly tenants?: Readonly<Record<string, { readonly weight?: number | undefined }>> | undefined
  /** After this time, past usage counts half. Default: 1 day. */
  readonly halfLife?: Duration | undefined
  /** How long a holder has between a preemption notice and losing the permit. Default: 30 s. */
  readonly notice?: Duration | undefined
  /** The longest time a permit can be held, extended or not. Default: no limit. */
  readonly maxHold?: Duration | undefined
}

const DEFINITION_NAMES = knownNames<PoolDefinition>({
  resources: true,
  tenants: true,
  halfLife: true,
  notice: true,
  maxHold: true,
})

/** A complete, checked definition as published. Equal pools have equal JSON. */
export interface Definition {
  readonly resources: readonly {
    readonly name: string
    readonly shares: number
    readonly attributes: Attributes
  }[]
  /** The weight of each tenant, if tenants are listed. */
  readonly tenants?: Readonly<Record<string, number>>
  readonly halfLife: number
  readonly notice: number
  /** 0 means no limit, because JSON has no Infinity. */
  readonly maxHold: number
}

export const POOL_PREFIX = 'pool/'
export const NAME_MAX = 100
const NAME = /^[\w.:@-]{1,100}$/
const RESOURCES_MAX = 1000
const SHARES_MAX = 100
const TENANTS_MAX = 256
const JSON_MAX = 60_000
const HALF_LIFE_MS = 86_400_000
const NOTICE_MS = 30_000

/** Names that become part of a key have no `/`, so that keys of two pools never collide. */
export function checkName(what: string, name: unknown): asserts name is string {
  if (typeof name === 'string' && NAME.test(name)) return
  throw invalid(`${what} is ${show(name)}: use 1 to ${NAME_MAX} letters, digits and . _ : @ -`)
}

/** A label for a tenant or a kind of work: any string of limited length. */
export function checkLabel(what: string, label: unknown): asserts label is string {
  if (typeof label === 'string' && label !== '' && label.length <= NAME_MAX) return
  throw invalid(`${what} is ${show(label)}: give a string of 1 to ${NAME_MAX} characters`)
}

export function definitionOf(given: PoolDefinition): Definition {
  if (typeof given !== 'object' || given === null || !Array.isArray(given.resources)) {
    throw invalid(
      `the definition has no list of resources: give { resources: [{ name: 'gpu-0', … }, …] }`,
    )
  }
  checkNames('a pool', given, DEFINITION_NAMES)
  const { resources } = given
  if (resources.length === 0 || resources.length > RESOURCES_MAX) {
    throw invalid(`the pool has ${resources.length} resources: give 1 to ${RESOURCES_MAX}`)
  }
  const names = new Set<string>()
  const checked = resources.map((resource) => checkedResource(resource, names))
  const halfLife = durationOf(given.halfLife, 'halfLife', HALF_LIFE_MS)
  const notice = durationOf(given.notice, 'notice', NOTICE_MS)
  if (halfLife <= 0 || halfLife === Infinity) {
    throw invalid(`halfLife is ${formatDuration(halfLife)}: it must be finite and more than 0`)
  }
  if (notice === Infinity) throw invalid(`notice is infinite: give a finite duration`)
  const maxHold = durationOf(given.maxHold, 'maxHold', Infinity)
  const definition: Definition = {
    resources: checked,
    ...(given.tenants === undefined ? {} : { tenants: checkedTenants(given.tenants) }),
    halfLife,
    notice,
    maxHold: maxHold === Infinity ? 0 : maxHold,
  }
  const { length } = definitionJson(definition)
  if (length <= JSON_MAX) return definition
  throw invalid(
    `the pool's definition has ${length} characters, and the limit is ${JSON_MAX}. Use fewer resources or shorter attributes`,
  )
}

export function definitionJson(definition: Definition): string {
  return JSON.stringify(definition)
}

/** Parses a published definition. Returns `undefined` if it is unreadable. */
export function definitionFrom(json: string | undefined): Definition | undefined {
  try {
    const read = JSON.parse(json ?? '') as Definition
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
 * The keys of a resource, one for each share. The store counts claims, not sizes. With one key per
 * share, the store itself never lets more be held than exists. Several shares are taken in one
 * step, and each has its own fencing token.
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
  if (names.has(name)) throw invalid(`two resources are named ${show(name)}: names must be unique`)
  names.add(name)
  if (!Number.isInteger(shares) || shares < 1 || shares > SHARES_MAX) {
    throw invalid(
      `${show(name)} has shares ${show(shares)}: give an integer from 1 to ${SHARES_MAX}`,
    )
  }
  const attributes: Record<string, Attribute> = {}
  for (const attribute of Object.keys(rest).sort()) {
    const value = rest[attribute]
    if (value === undefined) continue
    if (!isAttribute(value)) {
      throw invalid(
        `${show(name)} has ${attribute} ${show(value)}: an attribute must be a string, a number or a boolean`,
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
      `the pool has ${names.length} tenants: list 1 to ${TENANTS_MAX}, or leave 'tenants' out to admit any tenant`,
    )
  }
  const weights: Record<string, number> = {}
  for (const name of names) {
    checkLabel("a tenant's name", name)
    const weight = tenants[name]?.weight ?? 1
    if (!(weight > 0 && weight <= 1e6)) {
      throw invalid(
        `tenant ${show(name)} has weight ${show(weight)}: give a number above 0, at most 1000000`,
      )
    }
    weights[name] = weight
  }
  return weights
}

function durationOf(value: Duration | undefined, name: string, fallback: number): number {
  return value === undefined ? fallback : milliseconds(value, name)
}
