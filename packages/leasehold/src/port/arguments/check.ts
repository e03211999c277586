import type { Refusal } from '../errors.ts'
import type {
  ClaimRequest,
  ClaimSpec,
  GrantRequest,
  Key,
  LeaseId,
  Observer,
  Query,
  ReleaseRequest,
  RevokeRequest,
  UpdateRequest,
  WatchTarget,
} from '../lease-store.ts'
import type { Limits } from '../limits.ts'
import { byteLength } from '../runtime.ts'
import { formatDuration } from '../time/duration.ts'
import { show } from './show.ts'

/**
 * Every store checks its arguments with these functions first, so that an invalid call gets the same
 * refusal everywhere. Each returns the refusal, or `undefined` if there is nothing to complain of.
 */
export type Complaint = Refusal | undefined

/**
 * Whether a key has passed these checks before. A store that looks up its keys anyway uses this to
 * skip the characters of known keys.
 */
export type KnownKey = (key: Key) => boolean

const noneKnown: KnownKey = () => false

export function checkGrant(request: GrantRequest, limits: Limits): Complaint {
  return (
    checkObject('grant', request) ??
    checkName('holder', request.holder, limits) ??
    checkTtl(request.ttl, limits) ??
    checkSpan('grace', request.grace, limits, false) ??
    checkMaxLife(request, limits) ??
    (request.parent === undefined ? undefined : checkLeaseId('parent', request.parent)) ??
    checkLabels(request.labels, limits) ??
    (request.claims === undefined ? undefined : checkClaims(request.claims, limits, noneKnown)) ??
    checkFlag('ifFree', request.ifFree) ??
    checkFlag('tied', request.tied) ??
    checkRequestId(request.request, limits)
  )
}

export function checkClaim(
  request: ClaimRequest,
  limits: Limits,
  known: KnownKey = noneKnown,
): Complaint {
  return (
    checkObject('claim', request) ??
    checkLeaseId('lease', request.lease) ??
    checkClaims(request.claims, limits, known) ??
    checkFlag('ifFree', request.ifFree) ??
    checkReplaces(request) ??
    checkRequestId(request.request, limits)
  )
}

export function checkRelease(
  request: ReleaseRequest,
  limits: Limits,
  known: KnownKey = noneKnown,
): Complaint {
  return (
    checkObject('release', request) ??
    checkLeaseId('lease', request.lease) ??
    checkKeys(request.keys, limits, known) ??
    checkToken(request.token) ??
    checkRequestId(request.request, limits)
  )
}

export function checkUpdate(request: UpdateRequest, limits: Limits): Complaint {
  return (
    checkObject('update', request) ??
    checkLeaseId('lease', request.lease) ??
    checkKey(request.key, limits) ??
    checkToken(request.token) ??
    checkValue(request.value, limits) ??
    checkRequestId(request.request, limits)
  )
}

export function checkRenew(leases: readonly LeaseId[], limits: Limits): Complaint {
  if (Array.isArray(leases) && leases.length > limits.renewBatch) {
    return exceeded(
      `leases has ${leases.length} entries; the maximum per call is ${limits.renewBatch}. Renew them in several calls.`,
    )
  }
  return checkLeases(leases)
}

export function checkLeases(leases: readonly LeaseId[]): Complaint {
  if (!Array.isArray(leases))
    return invalid(`leases is ${show(leases)}: give an array of lease ids`)
  for (const lease of leases) {
    const complaint = checkLeaseId('lease', lease)
    if (complaint) return complaint
  }
  return undefined
}

export function checkRevoke(request: RevokeRequest, limits: Limits): Complaint {
  return (
    checkObject('revoke', request) ??
    checkRevokeTarget(request, limits) ??
    checkOptionalName('by', request.by, limits) ??
    checkOptionalName('why', request.why, limits) ??
    checkSpan('after', request.after, limits, false) ??
    checkRequestId(request.request, limits)
  )
}

export function checkQuery(query: Query, limits: Limits): Complaint {
  const complaint =
    checkObject('query', query) ??
    checkNames('query', query, ['key', 'prefix', 'lease', 'leases', 'history'])
  if (complaint) return complaint
  if ('limit' in query && query.limit !== undefined) {
    const { limit } = query
    if (!Number.isInteger(limit) || limit < 1 || limit > limits.page) {
      return invalid(`limit is ${show(limit)}: it must be an integer from 1 to ${limits.page}`)
    }
  }
  if ('key' in query) return checkKey(query.key, limits)
  if ('prefix' in query)
    return checkPrefix(query.prefix, limits) ?? checkAfterKey(query.after, limits)
  if ('lease' in query) return checkLeaseId('lease', query.lease)
  if ('history' in query) return checkKey(query.history, limits)
  if (query.leases !== true) return invalid(`leases is ${show(query.leases)}: it must be true`)
  return query.after === undefined ? undefined : checkLeaseId('after', query.after)
}

function checkAfterKey(after: Key | undefined, limits: Limits): Complaint {
  return after === undefined ? undefined : checkPrefix(after, limits, 'after')
}

export function checkWatch(target: WatchTarget, observer: Observer, limits: Limits): Complaint {
  const complaint =
    checkObject('target', target) ?? checkNames('watch', target, ['prefix', 'lease'])
  if (complaint) return complaint
  if (typeof observer !== 'function') {
    return invalid(`observer is ${show(observer)}: give a function to call with each notice`)
  }
  if ('lease' in target) return checkLeaseId('lease', target.lease)
  const { from } = target
  if (from !== undefined && !(Number.isSafeInteger(from) && from >= 0)) {
    return invalid(`from is ${show(from)}: it must be a revision, an integer of at least 0`)
  }
  return checkPrefix(target.prefix, limits)
}

export function checkKey(key: Key, limits: Limits, name = 'key'): Complaint {
  if (typeof key !== 'string') return invalid(`${name} is ${show(key)}: it must be a string`)
  if (key.length === 0) return invalid(`${name} is empty: give it at least one character`)
  return checkPrefix(key, limits, name)
}

function checkKeyUnless(known: KnownKey, key: Key, limits: Limits): Complaint {
  return typeof key === 'string' && known(key) ? undefined : checkKey(key, limits)
}

function checkPrefix(prefix: string, limits: Limits, name = 'prefix'): Complaint {
  if (typeof prefix !== 'string') return invalid(`${name} is ${show(prefix)}: it must be a string`)
  if (prefix.length > limits.keyLength) {
    return invalid(
      `${name} ${show(prefix)} has ${prefix.length} characters; the maximum is ${limits.keyLength}. Use a shorter ${name}.`,
    )
  }
  // Every key of every call is checked here, and a loop is faster than a regular expression.
  for (let at = 0; at < prefix.length; at++) {
    const code = prefix.charCodeAt(at)
    if (code < 0x20 || code === 0x7f) {
      return invalid(`${name} ${show(prefix)} has a control character: use printable characters`)
    }
    // A lone surrogate cannot be written as UTF-8: it would be another key when read from disk.
    if (code >= 0xd800 && code <= 0xdfff && !prefix.isWellFormed()) {
      return invalid(`${name} ${show(prefix)} is not well-formed Unicode: it has half a character`)
    }
  }
  return undefined
}

function checkRevokeTarget(request: RevokeRequest, limits: Limits): Complaint {
  const target = request.target
  const complaint =
    checkObject('target', target) ??
    checkNames('revoke', target, ['lease', 'parent', 'prefix', 'key'])
  if (complaint) return complaint
  if ('lease' in target) return checkLeaseId('lease', target.lease)
  if ('parent' in target) return checkLeaseId('parent', target.parent)
  if (request.after !== undefined) {
    return invalid(
      `after is ${show(request.after)}, but claims on keys are removed at once: use it only with a lease or a parent`,
    )
  }
  if ('prefix' in target) return checkPrefix(target.prefix, limits)
  return (
    checkKey(target.key, limits) ??
    (target.token === undefined ? undefined : checkToken(target.token))
  )
}

/** An object that names two of these is ambiguous. */
function checkNames(what: string, given: object, names: readonly string[]): Complaint {
  const named = names.filter((name) => name in given)
  if (named.length === 1) return undefined
  const others = named.length > 1 ? `, not ${named.join(' and ')}` : ''
  return invalid(`a ${what} must have exactly one of ${names.join(', ')}${others}`)
}

function checkClaims(claims: readonly ClaimSpec[], limits: Limits, known: KnownKey): Complaint {
  if (!Array.isArray(claims)) return invalid(`claims is ${show(claims)}: give an array of claims`)
  if (claims.length === 0) return invalid('claims is empty: give at least one key')
  if (claims.length > limits.keysPerClaim) {
    return exceeded(
      `claims has ${claims.length} keys; the maximum per call is ${limits.keysPerClaim}. Claim fewer keys, or one key that stands for all.`,
    )
  }
  for (const claim of claims) {
    const complaint = checkObject('claim', claim) ?? checkClaimSpec(claim, limits, known)
    if (complaint) return complaint
  }
  return checkDistinct(claims.length, (index) => claims[index]!.key)
}

function checkClaimSpec(claim: ClaimSpec, limits: Limits, known: KnownKey): Complaint {
  const { mode, limit } = claim
  if (mode !== undefined && mode !== 'exclusive' && mode !== 'shared') {
    return invalid(`mode is ${show(mode)}: it must be 'exclusive' or 'shared'`)
  }
  if (limit !== undefined) {
    if (mode !== 'shared') {
      return invalid(
        `limit is ${show(limit)}, but the claim is exclusive: use a limit only with mode 'shared'`,
      )
    }
    if (!Number.isInteger(limit) || limit < 1 || limit > limits.claimsPerKey) {
      return invalid(
        `limit is ${show(limit)}: it must be an integer from 1 to ${limits.claimsPerKey}`,
      )
    }
  }
  return checkKeyUnless(known, claim.key, limits) ?? checkValue(claim.value, limits)
}

function checkKeys(keys: readonly Key[], limits: Limits, known: KnownKey): Complaint {
  if (!Array.isArray(keys)) return invalid(`keys is ${show(keys)}: give an array of keys`)
  if (keys.length === 0) return invalid('keys is empty: give at least one key')
  if (keys.length > limits.keysPerClaim) {
    return exceeded(
      `keys has ${keys.length} keys; the maximum per call is ${limits.keysPerClaim}. Release them in several calls.`,
    )
  }
  for (const key of keys) {
    const complaint = checkKeyUnless(known, key, limits)
    if (complaint) return complaint
  }
  return checkDistinct(keys.length, (index) => keys[index]!)
}

function checkDistinct(count: number, keyAt: (index: number) => Key): Complaint {
  if (count === 1) return undefined
  const seen = new Set<Key>()
  for (let index = 0; index < count; index++) {
    const key = keyAt(index)
    if (seen.has(key)) return invalid(`key ${show(key)} is given twice in one call: give it once`)
    seen.add(key)
  }
  return undefined
}

function checkValue(value: string | undefined, limits: Limits): Complaint {
  if (value === undefined) return undefined
  if (typeof value !== 'string') return invalid(`value is ${show(value)}: it must be a string`)
  // A code unit is at most three bytes of UTF-8, so the bytes of most values need not be counted.
  if (value.length * 3 > limits.valueBytes) {
    const bytes = byteLength(value)
    if (bytes > limits.valueBytes) {
      return exceeded(`the value has ${bytes} bytes: at most ${limits.valueBytes} are allowed`)
    }
  }
  if (!value.isWellFormed()) return invalid('the value is not well-formed Unicode')
  return undefined
}

function checkReplaces({ replaces, ifFree }: ClaimRequest): Complaint {
  if (replaces === undefined) return undefined
  if (!ifFree) return checkToken(replaces, 'replaces')
  return invalid('a claim has both ifFree and replaces: give only one of them')
}

export function checkToken(token: number, name = 'token'): Complaint {
  if (Number.isSafeInteger(token) && token > 0) return undefined
  return invalid(`${name} is ${show(token)}: it must be the integer that the claim returned`)
}

function checkTtl(ttl: number, limits: Limits): Complaint {
  if (ttl === undefined) return invalid('ttl is missing: give a number of milliseconds')
  if (typeof ttl === 'number' && ttl < limits.ttlMin) {
    return invalid(
      `ttl is ${formatDuration(ttl)}; the minimum is ${formatDuration(limits.ttlMin)}. Use a longer ttl.`,
    )
  }
  return checkSpan('ttl', ttl, limits, true)
}

function checkMaxLife(request: GrantRequest, limits: Limits): Complaint {
  const { maxLife, ttl } = request
  if (maxLife === undefined) return undefined
  if (typeof maxLife === 'number' && ttl !== Infinity && maxLife < ttl) {
    return invalid(
      `maxLife ${formatDuration(maxLife)} is shorter than ttl ${formatDuration(ttl)}: use at least the ttl`,
    )
  }
  return checkSpan('maxLife', maxLife, limits, true)
}

function checkSpan(
  name: string,
  value: number | undefined,
  limits: Limits,
  infinite: boolean,
): Complaint {
  if (value === undefined || (infinite && value === Infinity)) return undefined
  if (typeof value !== 'number' || !(value >= 0)) {
    return invalid(`${name} is ${show(value)}: it must be a number of milliseconds, at least 0`)
  }
  if (value > limits.ttlMax) {
    return invalid(
      `${name} is ${formatDuration(value)}; the maximum is ${formatDuration(limits.ttlMax)}. Use a shorter ${name}${infinite ? ', or Infinity' : ''}.`,
    )
  }
  return undefined
}

function checkLabels(labels: GrantRequest['labels'], limits: Limits): Complaint {
  if (labels === undefined) return undefined
  const complaint = checkObject('labels', labels)
  if (complaint) return complaint
  const entries = Object.entries(labels)
  if (entries.length > limits.labels) {
    return exceeded(`labels has ${entries.length} labels; the maximum is ${limits.labels}`)
  }
  for (const [name, value] of entries) {
    const wrong =
      checkName(`the label ${show(name)}`, value, limits, true) ??
      checkName("a label's name", name, limits)
    if (wrong) return wrong
  }
  return undefined
}

function checkName(name: string, value: string, limits: Limits, mayBeEmpty = false): Complaint {
  if (typeof value !== 'string') return invalid(`${name} is ${show(value)}: it must be a string`)
  if (value.length === 0 && !mayBeEmpty) return invalid(`${name} is empty: give a string`)
  if (value.length > limits.nameLength) {
    return invalid(
      `${name} ${show(value)} has ${value.length} characters; the maximum is ${limits.nameLength}`,
    )
  }
  if (!value.isWellFormed()) return invalid(`${name} is not well-formed Unicode`)
  return undefined
}

function checkOptionalName(name: string, value: string | undefined, limits: Limits): Complaint {
  return value === undefined ? undefined : checkName(name, value, limits, true)
}

function checkLeaseId(name: string, id: LeaseId): Complaint {
  if (typeof id === 'string' && id.length > 0) return undefined
  return invalid(`${name} is ${show(id)}: it must be the id that grant returned`)
}

function checkFlag(name: string, value: boolean | undefined): Complaint {
  if (value === undefined || typeof value === 'boolean') return undefined
  return invalid(`${name} is ${show(value)}: it must be true or false`)
}

function checkRequestId(id: string | undefined, limits: Limits): Complaint {
  return id === undefined ? undefined : checkName('request', id, limits)
}

function checkObject(name: string, value: unknown): Complaint {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return undefined
  return invalid(`${name} is ${show(value)}: it must be an object`)
}

function invalid(message: string): Refusal {
  return { code: 'invalid-argument', message }
}

function exceeded(message: string): Refusal {
  return { code: 'limit-exceeded', message }
}
