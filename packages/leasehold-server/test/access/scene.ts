import { memoryStore } from 'leasehold/memory'
import { DEFAULT_LIMITS, type LeaseStore, type Notice } from 'leasehold/port'
import { TestClock } from 'leasehold/testing'
import { expect } from 'vitest'
import { Access, type AuditEntry, parseRight, type Quota } from '../../src/access/index.ts'

export async function open() {
  const clock = new TestClock()
  const store = memoryStore({ clock })
  const entries: AuditEntry[] = []
  const audit = { record: (entry: AuditEntry) => void entries.push(entry) }
  const access = await Access.open({ store, limits: DEFAULT_LIMITS, audit, clock })
  const token = (name: string, rights: readonly string[], quota?: Quota) =>
    access.tokens.create({ name, rights: rights.map(parseRight), quota })
  /** The store of a principal with these rights. */
  const as = async (name: string, rights: readonly string[], quota?: Quota) => {
    const text = await token(name, rights, quota)
    return access.admit({ authorization: `Bearer ${text}` })
  }
  return { clock, store, entries, access, token, as }
}

/** A lease with a claim on each key. */
export async function lease(store: LeaseStore, keys: readonly string[] = [], holder = 'me') {
  const claims = keys.map((key) => ({ key }))
  const granted = await store.grant({ holder, ttl: 60_000, ...(claims.length > 0 && { claims }) })
  if (granted.outcome === 'busy') throw new Error('busy')
  return granted
}

export function hear(store: LeaseStore, target: Parameters<LeaseStore['watch']>[0]) {
  const notices: Notice[] = []
  const watch = store.watch(target, (notice) => notices.push(notice))
  return { notices, watch }
}

export function refused(code: string): Error {
  return expect.objectContaining({ code })
}
