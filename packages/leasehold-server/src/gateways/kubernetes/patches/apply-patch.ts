import { badRequest } from '../status.ts'
import { jsonPatch } from './json-patch.ts'
import { mergePatch } from './merge-patch.ts'
import { strategicMergePatch } from './strategic-merge-patch.ts'

type Patch = (target: unknown, patch: unknown) => unknown

const PATCHES: Readonly<Record<string, Patch>> = {
  'application/merge-patch+json': mergePatch,
  'application/strategic-merge-patch+json': strategicMergePatch,
  'application/json-patch+json': jsonPatch,
}
/** A Lease has a depth of 4. */
const DEPTH_MAX = 32

/** The content types of the patches that are served. */
export const PATCH_TYPES = Object.keys(PATCHES)

/** The patched object. `target` is not changed. Throws a `Refusal` if the patch is malformed. */
export function applyPatch(type: string, target: unknown, patch: unknown): unknown {
  if (isDeeperThan(patch, DEPTH_MAX)) {
    throw badRequest(`the patch is nested more than ${DEPTH_MAX} deep`)
  }
  return PATCHES[type]!(target, patch)
}

function isDeeperThan(value: unknown, most: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (most === 0) return true
  return Object.values(value).some((inner) => isDeeperThan(inner, most - 1))
}
