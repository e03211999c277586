import { fileStore } from 'leasehold/file'
import type { LeaseStore } from 'leasehold/port'
import type { Template } from '../edits.ts'
import { MemoryDisk } from './memory-disk.ts'

/** The files of a closed store, and its contents after each of its changes. */
export interface Made {
  readonly files: ReadonlyMap<string, Buffer>
  readonly states: readonly State[]
}

export interface State {
  readonly revision: number
  readonly contents: string
}

const OPTIONS: Readonly<Record<Template, { segmentBytes: number; snapshotBytes?: number }>> = {
  log: { segmentBytes: 16 << 10 },
  segments: { segmentBytes: 4 << 10 },
  snapshot: { segmentBytes: 8 << 10, snapshotBytes: 2 << 10 },
}

export async function makeTemplate(template: Template): Promise<Made> {
  const disk = new MemoryDisk(new Map())
  const options = { ...OPTIONS[template], disk, limits: LIMITS }
  const store = await fileStore('memory', options)
  const states: State[] = [await stateOf(store)]
  const parent = await grant(store, 'parent')
  states.push(await stateOf(store))
  for (let round = 0; round < 14; round++) {
    const lease = await grant(store, `holder-${round}`, round % 3 === 0 ? parent : undefined)
    states.push(await stateOf(store))
    const claims = [
      { key: `a/${round % 4}`, value: 'v'.repeat(round * 20) },
      { key: `b/${round}`, mode: 'shared' as const, limit: 2 },
    ]
    const claimed = await store.claim({ lease, claims, request: `request-${round}` })
    states.push(await stateOf(store))
    if (round % 2 === 0 && claimed.outcome === 'claimed') {
      await store.release({ lease, token: claimed.token, keys: [`b/${round}`] })
      states.push(await stateOf(store))
    }
    if (round % 5 === 4) {
      await store.revoke({ target: { lease }, by: 'somebody', why: 'a test' })
      states.push(await stateOf(store))
    }
  }
  await store.close()
  return { files: disk.files, states }
}

export const LIMITS = { events: 64, history: 256, idleKeys: 64, requests: 64, ended: 256 }

async function grant(store: LeaseStore, holder: string, parent?: string): Promise<string> {
  const request = { holder, ttl: 3_600_000, labels: { a: 'b' }, ...(parent && { parent }) }
  const granted = await store.grant(request)
  if (granted.outcome !== 'granted') throw new Error('a lease without claims is granted')
  return granted.lease
}

/** The holders and their keys, without times, which opening may change. */
export async function stateOf(store: LeaseStore): Promise<State> {
  const { leases, revision } = await store.read({ leases: true })
  const { keys } = await store.read({ prefix: '' })
  const contents = JSON.stringify({
    leases: leases.map(({ id, holder }) => [id, holder]).sort(),
    keys: keys.map(({ key, claims }) => [key, claims.map(({ token, value }) => [token, value])]),
  })
  return { revision, contents }
}
