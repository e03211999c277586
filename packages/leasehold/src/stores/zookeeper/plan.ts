import { type End, holders, type Key, type LeaseId, type Limits } from '../../port/index.ts'
import { REQUEST_BYTES } from './faults.ts'
import type { Paths } from './paths.ts'
import { type EventRecord, encode, encodeTenures, keyRecord, NOTHING } from './records.ts'
import type { KeyState, LeaseClaim, Picked, SurveyedKey } from './tree.ts'
import type { NodeKind, Op } from './wire/index.ts'

/** What a part of a transaction is about, to tell why it failed. */
export type Part =
  | 'entry'
  | 'lease'
  | 'parent'
  | 'alive'
  | 'container'
  | 'index'
  | 'claim'
  | 'counter'
  | 'key'
  | 'end'

/**
 * Histories of keys, and values of claims that are told as removed, take no more than this of one
 * change: the rest must fit into the request as well, and a claim must be able to go.
 */
const EXTRAS_BYTES = 0.4 * REQUEST_BYTES

/** The parts of a transaction, as it is put together. */
export class Plan {
  readonly ops: Op[] = []
  readonly parts: Part[] = []
  readonly events: EventRecord[] = []
  readonly #paths: Paths
  readonly #limits: Limits
  #extras = 0

  constructor(paths: Paths, limits: Limits) {
    this.#paths = paths
    this.#limits = limits
  }

  create(part: Part, path: string, data: Buffer, kind: NodeKind = 'persistent'): void {
    this.#add(part, { do: 'create', path, data, kind })
  }

  delete(part: Part, path: string, version?: number): void {
    this.#add(part, { do: 'delete', path, version })
  }

  set(part: Part, path: string, data: Buffer, version?: number): void {
    this.#add(part, { do: 'set', path, data, version })
  }

  check(part: Part, path: string, version: number): void {
    this.#add(part, { do: 'check', path, version })
  }

  /** Fails where there is such a node: it is made and unmade in the same step. */
  checkAbsent(part: Part, path: string): void {
    this.create(part, path, Buffer.alloc(0))
    this.delete(part, path)
  }

  /** Takes the picked claims off their keys, writes down who has held, and tells of it. */
  takeOff(keys: readonly SurveyedKey[], end: End): void {
    for (const state of keys) {
      const path = this.#paths.key(state.key)
      for (const { place, token, record } of state.picked) {
        this.delete('claim', `${path}/${place.name}`)
        const { holder, value } = record
        this.events.push({
          type: 'removed',
          key: state.key,
          token,
          lease: place.lease,
          holder,
          mode: place.mode,
          limit: place.limit,
          value: this.#hasRoom(JSON.stringify(value ?? '')) ? value : undefined,
          end,
        })
      }
      const held = state.picked.filter(({ index }) => index < state.held)
      if (held.length > 0 || letsHold(state)) this.#writeHistory(state, held, end)
    }
  }

  /**
   * The keys of one call that are left on a lease, after some were taken off. Fails where others were
   * taken off meanwhile, or they would come back.
   */
  leave(lease: LeaseId, { claim, version }: LeaseClaim, keys: readonly Key[]): void {
    const path = this.#paths.claimsOf(lease, claim)
    if (keys.length > 0) this.set('index', path, encode(keys), version)
    else this.delete('index', path, version)
  }

  /** That a key changed hands is always written, even where who held no longer is: see `cameToHold`. */
  #writeHistory(state: SurveyedKey, held: readonly Picked[], end: End): void {
    const ended = held.map(({ place, token, claimedAt, record }) => ({
      token,
      holder: record.holder,
      lease: place.lease,
      heldSince: heldSince(state, place.mode, claimedAt),
      endedAt: 0,
      end,
    }))
    const tenures = [...ended.reverse(), ...keyRecord(state.node).tenures]
    const all = encodeTenures(tenures.slice(0, this.#limits.historyPerKey))
    const history = this.#hasRoom(all) ? all : NOTHING
    this.set('key', this.#paths.key(state.key), history, state.node!.stat.version)
  }

  #hasRoom(extra: string | Buffer): boolean {
    const bytes = Buffer.byteLength(extra)
    if (this.#extras + bytes > EXTRAS_BYTES) return false
    this.#extras += bytes
    return true
  }

  #add(part: Part, op: Op): void {
    this.parts.push(part)
    this.ops.push(op)
  }
}

/** Whether somebody comes to hold because the picked claims go. */
function letsHold({ line, held, picked }: SurveyedKey): boolean {
  const gone = new Set(picked.map(({ place }) => place))
  const left = line.filter((place) => !gone.has(place))
  return left.slice(0, holders(left)).some((place) => line.indexOf(place) >= held)
}

/**
 * Since when a claim holds. A key's node is set whenever a holder leaves, so that an exclusive claim
 * holds since then, or since it was made. For a shared claim, which may have held before another
 * left, the time of the claim is told.
 */
export function heldSince(
  state: KeyState,
  mode: 'exclusive' | 'shared',
  claimedAt: number,
): number {
  if (mode === 'shared' || !state.node) return claimedAt
  return Math.max(claimedAt, state.node.stat.mtime)
}

/** The revision at which a claim that waited came to hold: that of the last holder's leaving. */
export function cameToHold(states: readonly KeyState[]): number {
  return Math.max(0, ...states.map(({ node }) => node?.stat.mzxid ?? 0))
}
