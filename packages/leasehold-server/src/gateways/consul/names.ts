/** The keys of the lease store that the Consul API uses all begin with this. */
export const ROOT = 'consul/'
/** A value of the key-value store. */
export const ENTRY = `${ROOT}kv/`
/** Held during the lock-delay of a key. */
export const DELAY = `${ROOT}delay/`
export const SESSION = `${ROOT}session/`
/** Held while the ttl of a check has not passed. */
export const TTL = `${ROOT}ttl/`
/** The checks that belong to no service. */
export const NODE_CHECKS = `${ROOT}node-checks`
