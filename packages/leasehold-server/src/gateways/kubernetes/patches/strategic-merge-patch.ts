import { badRequest } from '../status.ts'
import { isObject } from './merge-patch.ts'

type Json = Readonly<Record<string, unknown>>

/** The only list of a Lease whose entries are merged, by this field. */
const MERGED_LIST = 'ownerReferences'
const MERGE_KEY = 'uid'

/**
 * The merge patch of Kubernetes: as RFC 7386, but `ownerReferences` are merged by their uid, and a
 * member named `$…` says how to merge. `kubectl apply` sends these.
 */
export function strategicMergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) throw badRequest('a strategic merge patch must be a JSON object')
  const { $patch: directive = 'merge', $retainKeys: retained, ...changes } = patch
  if (directive === 'delete') return {}
  if (directive !== 'merge' && directive !== 'replace') {
    throw badRequest("$patch must be 'merge', 'replace' or 'delete'")
  }
  const before = directive === 'merge' && isObject(target) ? Object.entries(target) : []
  const merged = new Map(before)
  for (const [name, value] of Object.entries(changes)) {
    // The order of owners has no meaning, and finalizers do not exist here.
    if (/^\$(setElementOrder|deleteFromPrimitiveList)\//.test(name)) continue
    if (name.startsWith('$'))
      throw badRequest(`the directive ${name.slice(0, 64)} is not supported`)
    if (value === null) merged.delete(name)
    else merged.set(name, merge(name, merged.get(name), value))
  }
  if (retained === undefined) return Object.fromEntries(merged)
  if (!Array.isArray(retained)) throw badRequest('$retainKeys must be a list')
  const kept = new Set<unknown>(retained)
  return Object.fromEntries([...merged].filter(([name]) => kept.has(name)))
}

function merge(name: string, before: unknown, value: unknown): unknown {
  if (isObject(value)) return strategicMergePatch(before, value)
  if (name !== MERGED_LIST || !Array.isArray(value)) return value
  return mergeList(Array.isArray(before) ? before : [], value)
}

function mergeList(before: readonly Json[], patch: readonly unknown[]): readonly unknown[] {
  const merged = new Map(before.map((entry) => [entry[MERGE_KEY], entry]))
  for (const entry of patch) {
    if (!isObject(entry)) throw badRequest(`${MERGED_LIST} must be a list of objects`)
    if (entry['$patch'] === 'replace') merged.clear()
    const key = entry[MERGE_KEY]
    if (entry['$patch'] === 'delete') merged.delete(key)
    else if (key !== undefined) merged.set(key, strategicMergePatch(merged.get(key), entry) as Json)
  }
  return [...merged.values()]
}
