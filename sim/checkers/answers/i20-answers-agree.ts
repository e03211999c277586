import type { Event, KeyEntry, RevokeTarget } from 'leasehold/port'
import type { Checker, History, Violated } from '../checker.js'
import type { Observation } from '../observation.js'
import { Model, type ModelClaim } from './model.js'

/**
 * I2, I15, I17, I18 and I20 for the whole port: every answer and every notification agrees with the
 * events. The events alone determine the claims of each revision, and the rules of the port
 * determine the holders. So this compares all that a client learnt about a revision (a hold, a busy
 * key, a read) with the claims of that revision.
 */
export function answersAgree(violated: Violated): Checker {
  return {
    name: 'I20 answers agree with events',
    finish(history) {
      new Replay(history, violated).run()
    },
  }
}

class Replay {
  readonly #history: History
  readonly #violated: Violated
  readonly #model = new Model()
  #events: readonly Event[] = []

  constructor(history: History, violated: Violated) {
    this.#history = history
    this.#violated = violated
  }

  run(): void {
    const { observations, steps } = this.#history
    const ordered = [...observations].sort((a, b) => a.revision - b.revision)
    let at = 0
    for (const [index, step] of steps.entries()) {
      const { revision, events, isFullRead } = step
      // Skip observations of revisions that the audit has missed.
      while (at < ordered.length && ordered[at]!.revision < revision) at++
      if (isFullRead) this.#model.reset(revision, events)
      else {
        const wrong = this.#model.apply(revision, events)
        if (wrong) {
          this.#violated(wrong)
          return
        }
      }
      this.#events = isFullRead ? [] : events
      // Revisions without events, such as the grant of a lease without claims, change nothing here.
      const next = steps[index + 1]
      const until = next === undefined ? Infinity : next.isFullRead ? revision + 1 : next.revision
      for (; at < ordered.length && ordered[at]!.revision < until; at++) {
        if (ordered[at]!.revision > revision) this.#events = []
        this.#judge(ordered[at]!, isFullRead && ordered[at]!.revision === revision)
      }
    }
  }

  #judge(observation: Observation, eventsUnknown: boolean): void {
    const wrong = this.#wrongWith(observation, eventsUnknown)
    if (wrong === undefined) return
    this.#violated(
      `${observation.client} received "${observation.type}" for revision ${observation.revision}: ${wrong}`,
    )
  }

  #wrongWith(observation: Observation, eventsUnknown: boolean): string | undefined {
    const model = this.#model
    switch (observation.type) {
      case 'placed':
        return this.#placed(observation)
      case 'busy':
        return this.#busy(observation)
      case 'released':
        if (eventsUnknown) return undefined
        return this.#removedExactly(observation.keys, observation.token)
      case 'updated':
        if (model.find(observation.key, observation.token)?.value === observation.value)
          return undefined
        return `${observation.key} ${observation.token} has another value`
      case 'revoked':
        return this.#revoked(observation, eventsUnknown)
      case 'keys':
        return first(observation.keys, (entry) => this.#entry(entry, observation.limit))
      case 'prefix':
        return this.#prefix(observation)
      case 'lease':
        return this.#same(observation.lease, observation.claims)
      case 'history':
        return this.#tenures(observation)
      case 'standing':
        return this.#standing(observation)
      case 'holds':
        if (model.of(observation.lease).length === 0) return undefined
        return model.holdsAll(observation.lease, observation.token)
          ? undefined
          : `${observation.token} waits`
      case 'removed':
        return model.find(observation.key, observation.token)
          ? `${observation.key} ${observation.token} exists`
          : undefined
      case 'gone': {
        const left = model.of(observation.lease)[0]
        return left && `lease ${observation.lease} still has ${left.key} ${left.token}`
      }
    }
  }

  #placed(observation: Observation & { type: 'placed' }): string | undefined {
    const model = this.#model
    const { lease, claims, ifFree, replaces, token, holds, ahead } = observation
    if (ifFree && !holds) return `${token} waits, although the request did not allow it`
    const own = model.of(lease).filter((claim) => claim.token === token)
    if (own.length !== claims.length) return `${own.length} of its ${claims.length} claims exist`
    for (const { key, mode = 'exclusive', limit = 0, value } of claims) {
      const claim = model.find(key, token)
      if (claim?.mode !== mode || claim.limit !== limit || claim.value !== value) {
        return `${key} ${token} differs from its request`
      }
      if (replaces && model.find(key, replaces)) return `${key} ${replaces} was not replaced`
    }
    if (holds !== model.holdsAll(lease, token)) return `${token} ${holds ? 'waits' : 'holds'}`
    const waits = own.filter((claim) => !model.holds(claim)).length
    if (waits !== ahead.length) return `${waits} of its claims wait, not ${ahead.length}`
    return first(ahead, (one) => model.misjudged(one, 1))
  }

  #busy({ claims, ahead }: Observation & { type: 'busy' }): string | undefined {
    const model = this.#model
    const taken = claims.filter((claim) => !model.isFree(claim))
    if (taken.length === 0) return `${claims.map(({ key }) => key).join(', ')} are free`
    if (taken.length !== ahead.length) return `${taken.length} keys are taken, not ${ahead.length}`
    return first(ahead, (one) => model.misjudged(one, 0))
  }

  #revoked(
    observation: Observation & { type: 'revoked' },
    eventsUnknown: boolean,
  ): string | undefined {
    const { target, leases, claims, more } = observation
    const removed = this.#events.filter(({ type }) => type === 'removed').length
    const changed = leases > 0 || claims > 0
    if (changed && !eventsUnknown && claims !== removed) {
      return `${removed} claims were removed, not ${claims}`
    }
    const left = more ? undefined : this.#leftOf(target)
    return left && `${left.key} ${left.token} still exists`
  }

  /** A claim that should have been removed, but was not. */
  #leftOf(target: RevokeTarget): ModelClaim | undefined {
    const model = this.#model
    if ('lease' in target) return model.of(target.lease)[0]
    if ('prefix' in target) return model.under(target.prefix).flatMap((key) => model.on(key))[0]
    if (!('key' in target)) return undefined
    const { key, token } = target
    return token === undefined ? model.on(key)[0] : model.find(key, token)
  }

  /** The events of this revision removed exactly the named claims. */
  #removedExactly(keys: readonly string[], token: number): string | undefined {
    const removed = this.#events.filter(({ type }) => type === 'removed')
    const missing = keys.find(
      (key) => !removed.some((one) => one.key === key && one.token === token),
    )
    if (missing !== undefined) return `${missing} ${token} was not removed`
    if (removed.length !== keys.length) return `${removed.length} claims were removed`
    return undefined
  }

  #entry({ key, claims, holders, count }: KeyEntry, limit: number): string | undefined {
    const model = this.#model
    const list = model.on(key)
    if (count !== list.length) return `${key} has ${list.length} claims, not ${count}`
    if (holders !== model.holders(key)) return `${model.holders(key)} hold ${key}, not ${holders}`
    if (claims.length !== Math.min(limit, list.length)) return `${claims.length} claims are shown`
    for (const [at, claim] of claims.entries()) {
      if (!isSame(claim, list[at]!)) return `${key} has ${list[at]!.token} and not ${claim.token}`
      const holds = claim.heldSince !== undefined
      if (holds !== at < holders)
        return `${key} ${claim.token} is shown as if it did ${holds ? '' : 'not '}hold`
    }
    return undefined
  }

  #prefix({ prefix, after, more, keys }: Observation & { type: 'prefix' }): string | undefined {
    const names = this.#model.under(prefix).filter((key) => key > after)
    const expected = names.slice(0, keys.length)
    if (more !== names.length > keys.length) return `there are ${names.length} keys`
    const shown = keys.map(({ key }) => key)
    if (shown.join() !== expected.join()) return `${shown.join()} instead of ${expected.join()}`
    return first(keys, (entry) => this.#entry(entry, entry.claims.length))
  }

  #same(lease: string, claims: readonly { key: string; token: number }[]): string | undefined {
    const name = ({ key, token }: { key: string; token: number }): string => `${key} ${token}`
    const there = this.#model.of(lease).map(name).sort().join()
    const shown = claims.map(name).sort().join()
    return there === shown ? undefined : `lease ${lease} has ${there || 'nothing'}, not ${shown}`
  }

  #standing({ lease, claims }: Observation & { type: 'standing' }): string | undefined {
    const wrong = this.#same(lease, claims)
    if (wrong) return wrong
    return first(claims, ({ token, holds }) =>
      holds === this.#model.holdsAll(lease, token)
        ? undefined
        : `${token} ${holds ? 'waits' : 'holds'}`,
    )
  }

  /** A history may be truncated, but it starts with the last holder. */
  #tenures({ key, tenures }: Observation & { type: 'history' }): string | undefined {
    const last = this.#model.lastHeld(key)
    const shown = tenures[0]?.token
    if (shown === undefined || last === undefined) return undefined
    const idle =
      this.#model.complete && tenures.find(({ token }) => !this.#model.hasHeld(key, token))
    if (idle) return `${idle.token} never held ${key}`
    // Tenures that ended in one revision have no order.
    if (tenures.some(({ token }) => token === last)) return undefined
    return `${key} was last held by ${last}, not by ${shown}`
  }
}

function isSame(
  claim: KeyEntry['claims'][number],
  { token, lease, mode, limit, value }: ModelClaim,
): boolean {
  const { limit: shown = 0 } = claim
  return (
    claim.token === token &&
    claim.lease === lease &&
    claim.mode === mode &&
    shown === limit &&
    claim.value === value
  )
}

function first<Item>(
  items: readonly Item[],
  wrong: (item: Item) => string | undefined,
): string | undefined {
  for (const item of items) {
    const found = wrong(item)
    if (found !== undefined) return found
  }
  return undefined
}
