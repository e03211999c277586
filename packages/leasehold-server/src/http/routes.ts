import { EVENTS } from './events.ts'
import { KEYS } from './keys.ts'
import { LEASES } from './leases.ts'
import { LOCKS } from './locks.ts'
import { POOLS } from './pools.ts'
import { REGISTRY } from './registry.ts'
import type { Route } from './route.ts'
import { SESSIONS } from './sessions.ts'

/** All that can be done over HTTP. What is not here is neither served nor described. */
export const ROUTES: readonly Route[] = [
  ...LOCKS,
  ...LEASES,
  ...KEYS,
  ...EVENTS,
  ...REGISTRY,
  ...POOLS,
  ...SESSIONS,
]
