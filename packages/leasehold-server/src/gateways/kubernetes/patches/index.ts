export { applyPatch, PATCH_TYPES } from './apply-patch.ts'
