import assert from 'node:assert/strict'
import { CLAIMS_SHOWN, type LeaseId } from '../../port/index.ts'
import type { Scene } from './scene.ts'
import type { Topic } from './topic.ts'

/** What can be read, at one revision, in pages. */
export const reads: Topic = {
  'a key that nobody ever claimed is an empty list': async (scene) => {
    const { claims, holders, count } = await scene.read(scene.key())
    assert.deepEqual([claims, holders, count], [[], 0, 0])
  },

  'a key is read with as many claims as asked for, and all are counted': async (scene) => {
    const key = scene.key()
    const tokens = []
    for (let at = 0; at < 5; at++) tokens.push((await scene.hold(key)).token)
    const { claims, holders, count } = await scene.store.read({ key, limit: 2 })
    assert.deepEqual([holders, count], [1, 5])
    assert.deepEqual(
      claims.map(({ token }) => token),
      tokens.slice(0, 2),
    )
  },

  'a prefix is read by name, in pages that together are complete': async (scene) => {
    const names = ['b', 'a/2', 'a', 'a/1', 'c/ü', 'c/😀'].map((name) => scene.key(`in/${name}`))
    await scene.hold(scene.key('out'))
    for (const key of names) await scene.hold(key)
    const free = names.pop()!
    await scene.store.revoke({ target: { key: free } })
    const found: string[] = []
    for (let after: string | undefined, more = true; more; after = found.at(-1)) {
      const page = await scene.store.read({ prefix: `${scene.prefix}in/`, after, limit: 2 })
      assert.ok(page.keys.length <= 2)
      assert.ok(!page.more || page.keys.length === 2, 'a page was cut short')
      found.push(...page.keys.map(({ key }) => key))
      more = page.more
    }
    assert.deepEqual(found, [...found].sort(), 'not in the order of names')
    assert.deepEqual(found, names.sort())
  },

  'a prefix shows of each key the holders and the first who waits': async (scene) => {
    const [a, b] = [scene.key('a'), scene.key('b')]
    const line = []
    for (let at = 0; at < 4; at++) line.push((await scene.hold(a)).token)
    const shared = []
    for (let at = 0; at < 3; at++) {
      shared.push((await scene.grant({ claims: [{ key: b, mode: 'shared' }] })).token)
    }
    const { keys } = await scene.store.read({ prefix: scene.prefix })
    const shown = keys.map(({ key, claims, holders, count }) => [
      key,
      claims.map(({ token }) => token),
      holders,
      count,
    ])
    assert.deepEqual(shown, [
      [a, line.slice(0, 2), 1, 4],
      [b, shared, 3, 3],
    ])
  },

  [`a prefix shows at most ${CLAIMS_SHOWN} claims of a key`]: async (scene) => {
    const key = scene.key()
    for (let at = 0; at < CLAIMS_SHOWN + 2; at++) {
      await scene.grant({ claims: [{ key, mode: 'shared' }] })
    }
    const [entry] = (await scene.store.read({ prefix: scene.prefix })).keys
    assert.equal(entry!.claims.length, CLAIMS_SHOWN)
    assert.deepEqual([entry!.holders, entry!.count], [CLAIMS_SHOWN + 2, CLAIMS_SHOWN + 2])
  },

  'a lease is read with its claims': async (scene) => {
    const [a, b] = [scene.key('a'), scene.key('b')]
    const { lease, token } = await scene.grant({ claims: [{ key: a, value: 'x' }, { key: b }] })
    const { claims, lease: read } = await scene.store.read({ lease })
    assert.deepEqual(claims.map(({ key }) => key).sort(), [a, b])
    assert.ok(claims.every((claim) => claim.token === token && claim.lease === lease))
    assert.equal(read?.claims, 2)
    assert.equal((await scene.store.read({ lease, limit: 1 })).claims.length, 1)
  },

  'a lease that never was is read as nothing': async (scene) => {
    const { lease, end, claims } = await scene.store.read({ lease: 'no-such-lease' })
    assert.deepEqual([lease, end, claims], [undefined, undefined, []])
  },

  'all leases are read, in pages that together are complete': async (scene) => {
    const granted = new Set<LeaseId>()
    for (let at = 0; at < 7; at++) granted.add((await scene.grant()).lease)
    const gone = (await scene.grant()).lease
    await scene.store.revoke({ target: { lease: gone } })
    const found = await allLeases(scene, 3)
    assert.equal(new Set(found).size, found.length, 'a lease was listed twice')
    for (const lease of granted) assert.ok(found.includes(lease), `${lease} is missing`)
    assert.ok(!found.includes(gone))
  },

  'the history of a key tells who held it, the latest first, and how it ended': async (scene) => {
    const key = scene.key()
    const ends = ['released', 'revoked', 'expired'] as const
    const tokens: number[] = []
    for (const [at, end] of ends.entries()) {
      const ttl = end === 'expired' ? scene.ttl : 600_000
      const { lease, token } = await scene.hold(key, { holder: `holder-${at}`, ttl })
      tokens.unshift(token)
      if (end === 'released') await scene.store.release({ lease, keys: [key], token })
      if (end === 'revoked') await scene.store.revoke({ target: { lease }, by: 'me', why: 'so' })
      if (end === 'expired') await scene.untilGone(lease, scene.ttl)
    }
    const { tenures } = await scene.store.read({ history: key })
    assert.deepEqual(
      tenures.map(({ token, holder, end }) => [token, holder, end.reason, end.by, end.why]),
      [
        [tokens[0], 'holder-2', 'expired', undefined, undefined],
        [tokens[1], 'holder-1', 'revoked', 'me', 'so'],
        [tokens[2], 'holder-0', 'released', undefined, undefined],
      ],
    )
    for (const { heldSince, endedAt } of tenures) assert.ok(heldSince <= endedAt)
    assert.ok(tenures[1]!.endedAt <= tenures[0]!.heldSince, 'tenures overlap')
  },

  'the history counts from the hand-over, not from the claim': async (scene) => {
    const key = scene.key()
    const first = await scene.hold(key)
    const second = await scene.hold(key)
    await scene.pass(scene.ttl / 2)
    await scene.store.release({ lease: first.lease, keys: [key], token: first.token })
    const { heldSince, claimedAt } = (await scene.read(key)).claims[0]!
    assert.ok(heldSince! > claimedAt)
    await scene.store.release({ lease: second.lease, keys: [key], token: second.token })
    const { tenures } = await scene.store.read({ history: key })
    assert.deepEqual(
      tenures.map((tenure) => [tenure.token, tenure.heldSince]),
      [
        [second.token, heldSince],
        [first.token, tenures[1]!.heldSince],
      ],
    )
    assert.equal(tenures[1]!.endedAt, heldSince)
  },

  'the history of a key is bounded': async (scene) => {
    const key = scene.key()
    const { lease } = await scene.grant()
    const count = Math.min(scene.limits.historyPerKey, 100) + 3
    let last = 0
    for (let at = 0; at < count; at++) {
      last = (await scene.claim(lease, key)).token
      await scene.store.release({ lease, keys: [key], token: last })
    }
    const { tenures } = await scene.store.read({ history: key })
    assert.ok(tenures.length > 0 && tenures.length <= scene.limits.historyPerKey)
    assert.equal(tenures[0]!.token, last, 'the latest is the one to keep')
  },
}

async function allLeases(scene: Scene, limit: number): Promise<LeaseId[]> {
  const found: LeaseId[] = []
  for (let after: LeaseId | undefined, more = true; more; after = found.at(-1)) {
    const page = await scene.store.read({ leases: true, after, limit })
    assert.ok(page.leases.length <= limit)
    found.push(...page.leases.map(({ id }) => id))
    more = page.more && page.leases.length > 0
  }
  return found
}
