import assert from 'node:assert/strict'
import type { ErrorCode, LeaseId, LeaseStore, Token } from '../../../port/index.ts'
import type { Scene } from '../scene.ts'

/** The state for a bad call: a key that one lease holds, with an older token from before. */
export interface BadCallContext {
  readonly scene: Scene
  readonly store: LeaseStore
  readonly key: string
  readonly lease: LeaseId
  readonly token: Token
  /** The token with which the same lease held the same key before. */
  readonly oldToken: Token
  /** A lease that was revoked. */
  readonly ended: LeaseId
}

/** One bad call: the code of its refusal, and what the message must contain. */
export interface BadCall {
  readonly name: string
  readonly code: ErrorCode
  /** The value, and the limit or the fix. */
  readonly says: readonly (string | RegExp)[]
  call(context: BadCallContext): unknown
  /** What the call needs to be a bad one. */
  prepare?(context: BadCallContext): Promise<unknown>
  readonly skip?: string | undefined
  /** It is about child leases, which a store need not have. */
  readonly family?: boolean | undefined
}

/** Makes the bad call: it must be refused, with a helpful message, and change nothing. */
export async function runBadCall(row: BadCall, scene: Scene): Promise<void> {
  const key = scene.key()
  const { lease, token: oldToken } = await scene.hold(key)
  await scene.store.release({ lease, keys: [key], token: oldToken })
  const { token } = await scene.claim(lease, { key, value: 'before' })
  const ended = (await scene.grant()).lease
  await scene.store.revoke({ target: { lease: ended }, by: 'admin', why: 'upgrade' })
  if (row.family && !scene.store.guarantees.childLeases) {
    await scene.refused('unsupported', () => scene.grant({ parent: lease }))
    return
  }
  const context: BadCallContext = { scene, store: scene.store, key, lease, token, oldToken, ended }
  await row.prepare?.(context)
  const before = await scene.everything([lease, ended])
  const error = await scene.refused(row.code, async () => row.call(context))
  for (const said of row.says) {
    const found = typeof said === 'string' ? error.message.includes(said) : said.test(error.message)
    assert.ok(found, `the message does not say ${said}: ${error.message}`)
  }
  assert.deepEqual(await scene.everything([lease, ended]), before, 'the refused call left a trace')
}
