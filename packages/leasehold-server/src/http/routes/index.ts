import type { Route } from '../route.ts'
import { CACHES } from './caches.ts'
import { ELECTIONS } from './elections.ts'
import { EVENTS } from './events.ts'
import { KEYS } from './keys.ts'
import { LEASES } from './leases.ts'
import { LOCKS } from './locks.ts'
import { ONCE } from './once.ts'
import { POOLS } from './pools.ts'
import { REGISTRY } from './registry.ts'
import { SESSIONS } from './sessions.ts'

/** All routes of the HTTP API. Routes that are not here are neither served nor described. */
export const ROUTES: readonly Route[] = [
  ...LOCKS,
  ...LEASES,
  ...KEYS,
  ...EVENTS,
  ...ELECTIONS,
  ...REGISTRY,
  ...POOLS,
  ...SESSIONS,
  ...CACHES,
  ...ONCE,
]
