import { createHash } from 'node:crypto'
import type { Position, Snapshot } from '../log/index.ts'
import { LeaseholdError, type Random } from '../port/index.ts'

/** Where an engine stores the parts of snapshots. Names have letters, digits, `_`, `-` and dots. */
export interface SnapshotParts {
  names(): Promise<readonly string[]>
  put(name: string, bytes: Uint8Array): Promise<unknown>
  get(name: string): Promise<Uint8Array | undefined>
  /** Does nothing if the part does not exist. */
  remove(name: string): Promise<unknown>
}

interface Manifest {
  readonly digest: string
  readonly chunks: readonly string[]
}

/** A manifest is named by its position and this suffix. */
const MANIFEST = 'manifest'

/**
 * Stores snapshots in parts. First come the chunks, under unique names, then a manifest that lists
 * them. The manifest with the highest position counts, so a newer snapshot replaces an older one even
 * if several processes save at once. All names begin with the position.
 */
export class Snapshots {
  readonly #parts: SnapshotParts
  readonly #random: Random

  constructor(parts: SnapshotParts, random: Random) {
    this.#parts = parts
    this.#random = random
  }

  async save(snapshot: Snapshot): Promise<void> {
    const { position } = snapshot
    if (newest(await this.#parts.names()) >= position) return
    const id = this.#random.id()
    const chunks: string[] = []
    for (const [at, chunk] of snapshot.chunks.entries()) {
      const name = `${position}.${id}.${at}`
      await this.#parts.put(name, chunk)
      chunks.push(name)
    }
    const manifest: Manifest = { digest: digestOf(snapshot), chunks }
    await this.#parts.put(`${position}.${MANIFEST}`, Buffer.from(JSON.stringify(manifest)))
    await this.#removeOlder()
  }

  async load(): Promise<Snapshot | undefined> {
    for (let position = newest(await this.#parts.names()); position >= 0; ) {
      const snapshot = await this.#read(position)
      if (typeof snapshot !== 'string') return snapshot
      // A newer one may have replaced it.
      const names = await this.#parts.names()
      if (names.includes(snapshot)) throw partNotFound(snapshot)
      const next = newest(names)
      if (next === position) throw damaged(position, 'a part of it is missing')
      position = next
    }
    return undefined
  }

  /** The snapshot at a position, or the name of a part that is missing. */
  async #read(position: Position): Promise<Snapshot | string> {
    const manifest = `${position}.${MANIFEST}`
    const bytes = await this.#parts.get(manifest)
    if (!bytes) return manifest
    const { digest, chunks: names } = manifestOf(bytes, position)
    const chunks: Uint8Array[] = []
    for (const name of names) {
      const chunk = await this.#parts.get(name)
      if (!chunk) return name
      chunks.push(chunk)
    }
    if (digestOf({ position, chunks }) === digest) return { position, chunks }
    throw damaged(position, 'its bytes differ from those that were saved')
  }

  /** Removes all parts of older snapshots, including those of a process that crashed while saving. */
  async #removeOlder(): Promise<void> {
    const names = await this.#parts.names()
    const last = newest(names)
    for (const name of names) if (positionOf(name) < last) await this.#parts.remove(name)
  }
}

/** The position of the newest complete snapshot, or -1. */
function newest(names: readonly string[]): Position {
  const manifests = names.filter((name) => name.endsWith(`.${MANIFEST}`))
  return Math.max(-1, ...manifests.map(positionOf))
}

function positionOf(name: string): Position {
  return Number(name.slice(0, name.indexOf('.')))
}

function digestOf({ position, chunks }: Snapshot): string {
  const hash = createHash('sha256').update(`${position}`)
  for (const chunk of chunks) hash.update(`,${chunk.length},`).update(chunk)
  return hash.digest('base64url')
}

function manifestOf(bytes: Uint8Array, position: Position): Manifest {
  try {
    return JSON.parse(Buffer.from(bytes).toString())
  } catch {
    throw damaged(position, 'its manifest cannot be read')
  }
}

function damaged(position: Position, why: string): LeaseholdError {
  return new LeaseholdError(
    'storage-damaged',
    `the snapshot at position ${position} is damaged: ${why}. Restore the log from a backup`,
  )
}

/** A listed part was read from a server that is behind: nothing is damaged. */
function partNotFound(name: string): LeaseholdError {
  const message = `the part ${name} of a snapshot is listed but was not found: the server that answered is behind. Load it again`
  return new LeaseholdError('unknown-outcome', message)
}
