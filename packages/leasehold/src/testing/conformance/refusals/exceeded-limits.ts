import type { ClaimSpec, LeaseId, Limits } from '../../../port/index.ts'
import type { Scene } from '../scene.ts'
import type { BadCall } from './bad-call.ts'

/** A limit above this is not reached in a test. */
const FILLED_MOST = 1000

/** Limits that are reached by many valid calls. */
// long because it is a table, one row for each wrong call.
export function exceededLimits(limits: Limits): BadCall[] {
  const tooLarge = (name: string, limit: number) =>
    limit <= FILLED_MOST
      ? undefined
      : `the limit of ${limit} ${name} is too large to be filled: open the store with at most ${FILLED_MOST}`
  return [
    {
      name: 'more keys in one claim than may be',
      code: 'limit-exceeded',
      says: [String(limits.keysPerClaim), String(limits.keysPerClaim + 1)],
      call: ({ store, lease, scene }) =>
        store.claim({ lease, claims: specs(scene, limits.keysPerClaim + 1) }),
    },
    {
      name: 'more keys in one release than may be',
      code: 'limit-exceeded',
      says: [String(limits.keysPerClaim), String(limits.keysPerClaim + 1)],
      call: ({ store, lease, token, scene }) => {
        const claims = specs(scene, limits.keysPerClaim + 1)
        return store.release({ lease, keys: claims.map(({ key }) => key), token })
      },
    },
    {
      name: 'more leases in one renewal than may be',
      code: 'limit-exceeded',
      says: [String(limits.renewBatch), String(limits.renewBatch + 1), /several/],
      call: ({ store, lease }) =>
        store.renew(Array.from({ length: limits.renewBatch + 1 }, () => lease)),
    },
    {
      name: 'more claims of one lease than may be',
      code: 'limit-exceeded',
      says: [String(limits.claimsPerLease), /release/i],
      skip: tooLarge('claims of a lease', limits.claimsPerLease),
      prepare: async ({ scene, lease }) => {
        for (let count = 1; count < limits.claimsPerLease; count++) {
          await scene.claim(lease, scene.key())
        }
      },
      call: ({ store, lease, scene }) => store.claim({ lease, claims: [{ key: scene.key() }] }),
    },
    {
      name: 'a grant with more claims than a lease may have',
      code: 'limit-exceeded',
      says: [String(limits.claimsPerLease)],
      skip:
        limits.claimsPerLease < limits.keysPerClaim
          ? undefined
          : `a lease may have ${limits.claimsPerLease} claims and one call makes ${limits.keysPerClaim}`,
      call: ({ store, scene }) =>
        store.grant({
          holder: 'a',
          ttl: 600_000,
          claims: specs(scene, limits.claimsPerLease + 1),
        }),
    },
    {
      name: 'more claims on one key than may be',
      code: 'limit-exceeded',
      says: [String(limits.claimsPerKey), /wait/i],
      skip: tooLarge('claims on a key', limits.claimsPerKey),
      prepare: async ({ scene, key }) => {
        for (let count = 1; count < limits.claimsPerKey; count++) await scene.hold(key)
      },
      call: ({ store, scene, key, lease }) =>
        store.claim({ lease, claims: [{ key: scene.key() }, { key }] }),
    },
    {
      name: 'more leases under one parent than may be',
      code: 'limit-exceeded',
      says: [String(limits.childrenPerLease)],
      family: true,
      skip: tooLarge('leases under one', limits.childrenPerLease),
      prepare: async ({ scene, lease }) => {
        for (let count = 0; count < limits.childrenPerLease; count++) {
          await scene.grant({ parent: lease })
        }
      },
      call: ({ store, lease }) => store.grant({ holder: 'a', ttl: 600_000, parent: lease }),
    },
    deepRow(limits),
  ]
}

function deepRow(limits: Limits): BadCall {
  let deepest: LeaseId
  return {
    name: 'leases deeper than they may be',
    code: 'limit-exceeded',
    says: [String(limits.leaseDepth), /higher/],
    family: true,
    prepare: async ({ scene, lease }) => {
      deepest = lease
      for (let depth = 1; depth < limits.leaseDepth; depth++) {
        deepest = (await scene.grant({ parent: deepest })).lease
      }
    },
    call: ({ store }) => store.grant({ holder: 'a', ttl: 600_000, parent: deepest }),
  }
}

function specs(scene: Scene, count: number): ClaimSpec[] {
  return Array.from({ length: count }, () => ({ key: scene.key() }))
}
