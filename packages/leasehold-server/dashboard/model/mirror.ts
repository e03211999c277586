import { type Claim, type Event, holders, type KeyEntry, type Lease } from 'leasehold/port'
import { noteOf } from '../../src/agents/hold-note.ts'
import { internalKey } from './internal-keys.ts'
import { KeyTree } from './trees/key-tree.ts'
import { SortedNames } from './trees/sorted-names.ts'

/** A claim, as far as the page knows it. */
export interface ClaimRow {
  readonly key: string
  readonly token: number
  readonly lease: string
  readonly holder: string
  readonly mode: 'exclusive' | 'shared'
  readonly limit?: number | undefined
  readonly claimedAt: number
  value?: string | undefined
  heldSince?: number | undefined
}

/** A key with its claims in order: the first `held` of them hold, the others wait. */
export interface KeyRow {
  readonly key: string
  claims: ClaimRow[]
  held: number
  /** The number of claims. It exceeds `claims` if the queue was too long to read. */
  count: number
  /** Events up to this revision are already included. */
  revision: number
}

/** A lease, as far as the page knows it. */
export interface LeaseRow {
  readonly id: string
  readonly holder: string
  /** The keys it has claims on. */
  readonly keys: string[]
  /** The lease as it was last read from the store. */
  detail?: Lease | undefined
}

/** Separates holder and id in the list of leases; it sorts before any letter. */
const SEPARATOR = '\u0001'

/**
 * A copy of all keys and leases of a server, read once and then updated by the store's events. The
 * cost of a change does not depend on the number of keys.
 */
export class Mirror {
  readonly keys = new Map<string, KeyRow>()
  readonly leases = new Map<string, LeaseRow>()
  readonly holders = new Map<string, Set<string>>()
  /** The keys that users named. */
  readonly tree = new KeyTree()
  /** The keys of recipes and of the server, each below what it belongs to. */
  readonly internal = new KeyTree()
  /** Keys with waiters. */
  readonly contended = new Set<string>()
  /** Keys with claims of agents, and how many. */
  readonly noted = new Map<string, number>()
  /** The number of changes, by the first part of the key. */
  readonly versions = new Map<string, number>()
  waiting = 0
  version = 0
  /** Called with a lease that lost its last claim and may have ended. */
  emptied: (lease: LeaseRow) => void = () => {}
  /** Called with a lease that is known only from its claims. */
  discovered: (lease: LeaseRow) => void = () => {}
  readonly #byHolder = new SortedNames()
  readonly #children = new Map<string, Set<string>>()

  /** All leases, sorted by holder. */
  leaseIds(): readonly string[] {
    return this.#byHolder.list()
  }

  /** The id in an entry of `leaseIds`. */
  static idIn(entry: string): string {
    return entry.slice(entry.indexOf(SEPARATOR) + 1)
  }

  static entryOf(holder: string, id: string): string {
    return holder + SEPARATOR + id
  }

  versionOf(part: string): number {
    return this.versions.get(part) ?? 0
  }

  /** Stores a key as it was read at a revision. */
  put(entry: KeyEntry, revision: number): void {
    const { key, claims, holders: held, count } = entry
    const row: KeyRow = { key, claims: claims.map(rowOf), held, count, revision }
    // Attach before `remove`, so that no lease seems to have lost its last claim.
    for (const claim of row.claims) this.#attach(claim)
    this.remove(key)
    if (count === 0) return
    this.keys.set(key, row)
    this.#inTree(key, (tree, path) => tree.add(key, path))
    this.#counted(row, 0)
    this.#changed(key)
  }

  /** Removes a key without claims. */
  remove(key: string): void {
    const row = this.keys.get(key)
    if (row === undefined) return
    this.keys.delete(key)
    const waited = row.count - row.held
    this.waiting -= waited
    this.#inTree(key, (tree, path) => {
      tree.wait(path, -waited)
      tree.delete(path)
    })
    this.contended.delete(key)
    for (const claim of row.claims) this.#detach(claim)
    this.#changed(key)
  }

  putLease(lease: Lease): void {
    const { id, holder, parent } = lease
    this.#leaseRow(id, holder, lease)
    this.version++
    if (parent === undefined) return
    const children = this.#children.get(parent)
    if (children === undefined) this.#children.set(parent, new Set([id]))
    else children.add(id)
  }

  /** The known leases under a lease. */
  childrenOf(id: string): readonly string[] {
    return [...(this.#children.get(id) ?? [])]
  }

  /** Removes an ended lease. Events remove its claims. */
  removeLease(id: string): void {
    const row = this.leases.get(id)
    if (row === undefined || row.keys.length > 0) return
    this.leases.delete(id)
    this.#children.delete(id)
    this.#children.get(row.detail?.parent ?? '')?.delete(id)
    this.#byHolder.delete(Mirror.entryOf(row.holder, id))
    const own = this.holders.get(row.holder)
    own?.delete(id)
    if (own?.size === 0) this.holders.delete(row.holder)
    this.version++
  }

  apply(event: Event): void {
    const { key, revision, type } = event
    const row = this.keys.get(key)
    if (row !== undefined && revision <= row.revision) return
    if (type === 'claimed') this.#claimed(event, row ?? this.#newRow(key))
    else if (row === undefined) return
    else if (type === 'removed') this.#removed(event, row)
    else {
      const claim = row.claims.find(({ token }) => token === event.token)
      if (claim !== undefined && type === 'updated') claim.value = event.value
      if (claim !== undefined && type === 'held') claim.heldSince = event.at
    }
    this.#changed(key)
  }

  #newRow(key: string): KeyRow {
    const row: KeyRow = { key, claims: [], held: 0, count: 0, revision: 0 }
    this.keys.set(key, row)
    this.#inTree(key, (tree, path) => tree.add(key, path))
    return row
  }

  #claimed(event: Event, row: KeyRow): void {
    const { key, token, lease, holder, mode, limit, value, at } = event
    if (row.claims.some((claim) => claim.token === token)) return
    const waited = row.count - row.held
    const claim: ClaimRow = { key, token, lease, holder, mode, limit, value, claimedAt: at }
    row.claims.push(claim)
    row.count++
    this.#attach(claim)
    this.#hold(row, at)
    this.#counted(row, waited)
  }

  #removed({ token, at, end, key }: Event, row: KeyRow): void {
    const index = row.claims.findIndex((claim) => claim.token === token)
    const waited = row.count - row.held
    row.count--
    if (index >= 0) {
      const [claim] = row.claims.splice(index, 1)
      if (index < row.held) row.held--
      this.#detach(claim!, end?.reason === 'expired')
    }
    if (row.count <= 0) {
      row.count = row.held = 0
      this.#counted(row, waited)
      this.keys.delete(key)
      this.#inTree(key, (tree, path) => tree.delete(path))
      return
    }
    this.#hold(row, at)
    this.#counted(row, waited)
  }

  /** Computes the holders. If the queue is not completely known, the previous holders stay. */
  #hold(row: KeyRow, at: number): void {
    const isWhole = row.count === row.claims.length
    row.held = isWhole ? holders(row.claims) : Math.max(row.held, holders(row.claims.slice(0, 1)))
    for (let index = 0; index < row.held; index++) {
      const claim = row.claims[index]
      if (claim !== undefined) claim.heldSince ??= at
    }
  }

  #counted(row: KeyRow, before: number): void {
    const waiting = row.count - row.held
    this.waiting += waiting - before
    if (waiting !== before) {
      this.#inTree(row.key, (tree, path) => tree.wait(path, waiting - before))
    }
    if (waiting > 0) this.contended.add(row.key)
    else this.contended.delete(row.key)
  }

  /** Calls `change` with the tree of a key and the key's path in it. */
  #inTree(key: string, change: (tree: KeyTree, path: string) => void): void {
    const internal = internalKey(key)
    if (internal === undefined) change(this.tree, key)
    else change(this.internal, internal.path)
  }

  #attach(claim: ClaimRow): void {
    const { lease, holder, key } = claim
    this.#leaseRow(lease, holder).keys.push(key)
    this.#note(claim, 1)
  }

  /** Counts a claim of an agent. Agents write their note when they claim, and never change it. */
  #note(claim: ClaimRow, by: number): void {
    if (noteOf(claim) === undefined) return
    const noted = (this.noted.get(claim.key) ?? 0) + by
    if (noted > 0) this.noted.set(claim.key, noted)
    else this.noted.delete(claim.key)
  }

  #detach(claim: ClaimRow, isOver = false): void {
    this.#note(claim, -1)
    const { lease, key } = claim
    const row = this.leases.get(lease)
    const index = row?.keys.indexOf(key) ?? -1
    if (row === undefined || index < 0) return
    row.keys[index] = row.keys.at(-1)!
    row.keys.pop()
    if (row.keys.length > 0) return
    if (isOver) this.removeLease(lease)
    else this.emptied(row)
  }

  #leaseRow(id: string, holder: string, detail?: Lease): LeaseRow {
    let row = this.leases.get(id)
    if (row !== undefined) {
      row.detail = detail ?? row.detail
      return row
    }
    row = { id, holder, keys: [], detail }
    this.leases.set(id, row)
    if (detail === undefined) this.discovered(row)
    this.#byHolder.add(Mirror.entryOf(holder, id))
    const own = this.holders.get(holder)
    if (own === undefined) this.holders.set(holder, new Set([id]))
    else own.add(id)
    return row
  }

  #changed(key: string): void {
    this.version++
    const part = key.split('/', 1)[0]!
    this.versions.set(part, this.versionOf(part) + 1)
  }
}

function rowOf({ key, token, lease, holder, mode, limit, value, claimedAt, heldSince }: Claim) {
  return { key, token, lease, holder, mode, limit, value, claimedAt, heldSince }
}
