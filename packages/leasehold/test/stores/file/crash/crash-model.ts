import { expect } from 'vitest'
import type { GrantRequest, LeaseStore } from '../../../../src/port/index.ts'
import type { Line, Taken } from './crash-options.ts'

/** Longer than any life in the test: such a lease cannot have expired. */
const LONG = 60_000

/** What must be true of a store, by all answers that clients got. */
export class CrashModel {
  /** Answered claims that nobody has started to end, and leases likewise. */
  readonly #held = new Map<string, string>()
  readonly #leases = new Set<string>()
  /** Claims and leases that were said to be over. */
  readonly #over = new Set<string>()
  readonly #endedLeases = new Set<string>()
  readonly #tokens = new Map<string, Set<number>>()
  readonly #before = new Map<string, number>()
  #revision = 0
  #answered: { request: string; spec: GrantRequest; lease: string; token: number }[] = []
  answers = 0

  /** Adds the output of one process before it was killed. */
  hear(lines: readonly Line[]): void {
    for (const line of lines) {
      if ('revision' in line) this.#revision = Math.max(this.#revision, line.revision)
      if ('will' in line) this.#begins(line)
      else this.#answer(line)
    }
    for (const [key, tokens] of this.#tokens) this.#before.set(key, Math.max(...tokens))
  }

  async check(store: LeaseStore): Promise<void> {
    const { leases, revision } = await store.read({ leases: true })
    const living = new Set(leases.map(({ id }) => id))
    const claims = new Set<string>()
    for (const { id } of leases) {
      const reading = await store.read({ lease: id })
      for (const { key, token } of reading.claims) claims.add(`${key}@${token}`)
    }
    expect(revision, 'I6, I14: the revision is not below any answered').toBeGreaterThanOrEqual(
      this.#revision,
    )
    const lost = [...this.#leases].filter((lease) => !living.has(lease))
    expect(lost, 'I6: every lease that was answered and not ended is there').toEqual([])
    const gone = [...this.#held.keys()].filter((claim) => !claims.has(claim))
    expect(gone, 'I6, I14: every claim that was answered and not ended is there').toEqual([])
    const risen = [...claims].filter((claim) => this.#over.has(claim))
    expect(risen, 'I13, I14: a claim that was said to be gone is gone').toEqual([])
    const undead = [...living].filter((lease) => this.#endedLeases.has(lease))
    expect(undead, 'I13: a lease that was said to be gone is gone').toEqual([])
    await this.#repeat(store)
  }

  /** Ends some leases, as another client would, so that they do not become too many. */
  async thin(store: LeaseStore): Promise<void> {
    const { leases } = await store.read({ leases: true })
    const long = leases.filter(({ ttl }) => ttl >= LONG)
    for (const { id } of long.slice(0, Math.max(0, long.length - 40))) {
      this.#begins({ will: 'revoke', lease: id })
      const { revision } = await store.revoke({ target: { lease: id } })
      this.hear([{ did: 'revoked', lease: id, revision }])
    }
  }

  /** A request that was answered before the crash gets the same answer after it. */
  async #repeat(store: LeaseStore): Promise<void> {
    for (const { request, spec, lease, token } of this.#answered.slice(-5)) {
      expect(await store.grant({ ...spec, request })).toMatchObject({ lease, token })
    }
    this.#answered = []
  }

  #begins(line: Extract<Line, { will: string }>): void {
    if (line.will === 'release') this.#held.delete(`${line.key}@${line.token}`)
    else this.#forget(line.lease)
  }

  #answer(line: Extract<Line, { did: string }>): void {
    this.answers++
    switch (line.did) {
      case 'granted':
        this.#answered.push(line)
        this.#take(line)
        break
      case 'claimed':
        this.#take(line)
        break
      case 'released':
      case 'refused':
      case 'removed':
        this.#held.delete(`${line.key}@${line.token}`)
        this.#over.add(`${line.key}@${line.token}`)
        break
      case 'revoked':
        this.#forget(line.lease)
        this.#endedLeases.add(line.lease)
        break
    }
  }

  #take({ lease, ttl, key, token }: Taken): void {
    const tokens = this.#tokens.get(key) ?? new Set()
    this.#tokens.set(key, tokens)
    expect(tokens.has(token), `I1: ${token} was given twice on ${key}`).toBe(false)
    expect(token, `I1: a token on ${key} is above those before`).toBeGreaterThan(
      this.#before.get(key) ?? 0,
    )
    tokens.add(token)
    if (ttl < LONG || this.#endedLeases.has(lease)) return
    if (!this.#over.has(`${key}@${token}`)) this.#held.set(`${key}@${token}`, lease)
    this.#leases.add(lease)
  }

  #forget(lease: string): void {
    this.#leases.delete(lease)
    for (const [claim, of] of this.#held) if (of === lease) this.#held.delete(claim)
  }
}
