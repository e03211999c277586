export { ENGINE_ADDRESSES, EngineAddress } from './engine-address.ts'
export type { LoadPackage } from './load-package.ts'
export { type EngineOptions, isEngine, type OpenedEngine, openEngine } from './open-engine.ts'
