import assert from 'node:assert/strict'
import {
  type Busy,
  type Claimed,
  type ClaimSpec,
  type ErrorCode,
  type Granted,
  type GrantRequest,
  type Key,
  type KeyReading,
  LeaseholdError,
  type LeaseId,
  type LeaseStore,
  type Limits,
  type Revision,
} from '../../port/index.ts'
import { WatchRecorder } from './watches/watch-recorder.ts'

/** A store that is open for one case. */
export interface Opened {
  readonly store: LeaseStore
  /** Moves the store's clock. Fulfilled when everything that was due has happened. */
  readonly advance?: ((ms: number) => Promise<void>) | undefined
  /** The minimum ttl of leases that must expire: on a busy machine a call may take long. */
  readonly ttl?: number | undefined
  /** Releases what `open` took besides the store, which is closed before. */
  readonly close?: (() => Promise<void>) | undefined
}

/** What all cases share. */
export interface Setting {
  readonly limits: Limits
  readonly shared: boolean
  readonly timeout: number | undefined
}

/** The environment of a case: a store, its own names, and helpers for what all cases do. */
export class Scene {
  readonly store: LeaseStore
  readonly limits: Limits
  /** The prefix of all keys of this case, so that cases can share an engine. */
  readonly prefix: string
  /** A ttl that is long enough for a call or two, and short enough to wait for. */
  readonly ttl: number
  /** Moves time exactly. Only if the store's clock can be moved. */
  readonly advance: ((ms: number) => Promise<void>) | undefined
  /** Others use the engine, too: its revision and its leases cannot be compared. */
  readonly #shared: boolean
  readonly #timeout: number | undefined
  readonly #recorders: WatchRecorder[] = []
  #names = 0

  constructor(opened: Opened, prefix: string, setting: Setting) {
    this.store = opened.store
    this.advance = opened.advance
    this.prefix = prefix
    this.limits = setting.limits
    this.#shared = setting.shared
    this.#timeout = setting.timeout
    const { ttl, expiryLateness } = opened.store.guarantees
    const wanted = Math.max(
      4 * ttl.min,
      4 * expiryLateness,
      opened.ttl ?? (opened.advance ? 1000 : 300),
    )
    this.ttl = this.steps(wanted)
  }

  /** The shortest time of at least `ms` that this store can measure. */
  steps(ms: number): number {
    const { min, step } = this.store.guarantees.ttl
    const least = Math.max(ms, min)
    return step > 0 ? Math.ceil(least / step) * step : least
  }

  /** A key, or any other name, of this case alone. */
  key(name = 'key'): Key {
    return `${this.prefix}${name}-${++this.#names}`
  }

  /** A lease that does not end by itself while the case runs. */
  async grant(spec: Partial<GrantRequest> = {}): Promise<Granted> {
    const answer = await this.store.grant({ holder: 'alice', ttl: 600_000, ...spec })
    assert.equal(answer.outcome, 'granted', `not granted: ${JSON.stringify(answer)}`)
    return answer as Granted
  }

  /** A lease with an exclusive claim on this key. */
  hold(key: Key, spec: Partial<GrantRequest> = {}): Promise<Granted> {
    return this.grant({ claims: [{ key }], ...spec })
  }

  async claim(lease: LeaseId, ...claims: (Key | ClaimSpec)[]): Promise<Claimed> {
    const answer = await this.store.claim({ lease, claims: specs(claims) })
    assert.equal(answer.outcome, 'claimed')
    return answer as Claimed
  }

  async claimIfFree(lease: LeaseId, ...claims: (Key | ClaimSpec)[]): Promise<Claimed | Busy> {
    return this.store.claim({ lease, claims: specs(claims), ifFree: true })
  }

  read(key: Key): Promise<KeyReading> {
    return this.store.read({ key })
  }

  /** The tokens of the holders of a key, in order. */
  async holders(key: Key): Promise<number[]> {
    const { claims, holders } = await this.read(key)
    return claims.slice(0, holders).map(({ token }) => token)
  }

  async lives(lease: LeaseId): Promise<boolean> {
    return (await this.store.read({ lease })).lease !== undefined
  }

  async revision(): Promise<Revision> {
    return (await this.read(`${this.prefix}nothing`)).revision
  }

  watchLease(lease: LeaseId): WatchRecorder {
    return this.#listen(new WatchRecorder(this.store, { lease }, this.#timeout))
  }

  watchPrefix(prefix: string, from?: Revision): WatchRecorder {
    return this.#listen(new WatchRecorder(this.store, { prefix, from }, this.#timeout))
  }

  /**
   * Lets at least this much time pass on the store's clock, and little more. If that clock cannot be
   * moved, a lease measures it: no guess at how long is long enough.
   */
  async pass(ms: number): Promise<void> {
    if (this.advance) return this.advance(ms)
    const { lease } = await this.grant({ holder: 'timer', ttl: this.steps(ms) })
    await this.untilGone(lease, ms)
  }

  /** Lets time pass until this lease, which is not renewed, has ended. Fails if that is too late. */
  async untilGone(lease: LeaseId, after: number): Promise<void> {
    const recorder = this.watchLease(lease)
    if (this.advance) await this.advance(after + this.store.guarantees.expiryLateness)
    while (recorder.notices.at(-1)?.type !== 'gone') await recorder.nextAny(after)
    recorder.close()
  }

  /** The call must be refused with this code. Returns the error. */
  async refused(code: ErrorCode, call: () => Promise<unknown>): Promise<LeaseholdError> {
    let answer: unknown
    try {
      answer = await call()
    } catch (error) {
      assert.ok(
        error instanceof LeaseholdError,
        `refused with something else than a LeaseholdError: ${error}`,
      )
      assert.equal(error.code, code, `refused with '${error.code}': ${error.message}`)
      assert.equal(error.outcome, 'refused')
      return error
    }
    return assert.fail(`it was not refused with '${code}' but answered ${JSON.stringify(answer)}`)
  }

  /** Everything that can be read: to check that nothing has changed, not even by a renewal. */
  async everything(leases: readonly LeaseId[] = []): Promise<unknown> {
    const { store } = this
    const { revision, keys } = await store.read({ prefix: this.prefix })
    const each = []
    for (const lease of leases) each.push(await store.read({ lease }))
    const histories = []
    for (const { key } of keys) histories.push((await store.read({ history: key })).tenures)
    if (this.#shared) return { keys, histories, each: each.map(withoutRevision) }
    const all = await store.read({ leases: true })
    return { revision, keys, histories, each, all }
  }

  closeRecorders(): void {
    for (const recorder of this.#recorders) recorder.close()
  }

  #listen(recorder: WatchRecorder): WatchRecorder {
    this.#recorders.push(recorder)
    return recorder
  }
}

function withoutRevision<R extends { readonly revision: Revision }>(reading: R) {
  return { ...reading, revision: undefined }
}

function specs(claims: readonly (Key | ClaimSpec)[]): ClaimSpec[] {
  return claims.map((claim) => (typeof claim === 'string' ? { key: claim } : claim))
}
