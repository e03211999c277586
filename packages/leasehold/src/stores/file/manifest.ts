import { ByteReader, ByteWriter } from '../../encoding/index.ts'
import type { Revision } from '../../port/index.ts'
import { damaged } from './damage.ts'
import type { Disk, DiskFile } from './disk/disk.ts'
import { KIND, putFrame, readFrame, SECTOR_BYTES } from './log/frame.ts'
import type { LogPosition } from './log/log-writer.ts'
import { checkFormat, MANIFEST, putFormat, temporaryName } from './log/segment.ts'

/**
 * What a folder must contain. The log alone cannot say this: it ends where zeros begin, and a lost
 * part of a file also reads as zeros.
 */
export interface Manifest {
  readonly storeId: string
  /**
   * `new`: nothing was answered yet, the log may be missing. `open`: a process uses the folder, or
   * crashed. `closed`: the log ends exactly at `end`.
   */
  readonly state: State
  /** The number of the snapshot that must exist, unless a newer one does; 0 for none. */
  readonly snapshot: number
  /** The log was durable up to here when this manifest was written. */
  readonly end: LogPosition
  /** The revision at that time. */
  readonly revision: Revision
  /** The store has answered with no revision above this one. */
  readonly ceiling: Revision
}

const STATES = ['new', 'open', 'closed'] as const
type State = (typeof STATES)[number]

/** Each slot has its own block, so that writing one cannot touch the other. */
const SLOT_BYTES = 4096
const SLOTS = 2

/**
 * The file of the manifest. It has two slots of one sector, which are written in turn. A sector is
 * written completely or not at all, so a crash leaves the last manifest or the one before. A slot
 * with a wrong checksum is damage.
 */
export class ManifestFile {
  readonly #file: DiskFile
  #generation: number

  private constructor(file: DiskFile, generation: number) {
    this.#file = file
    this.#generation = generation
  }

  static async create(disk: Disk, manifest: Manifest): Promise<ManifestFile> {
    const temporary = temporaryName(MANIFEST)
    const bytes = Buffer.alloc(SLOTS * SLOT_BYTES)
    for (let slot = 0; slot < SLOTS; slot++) encode(manifest, slot).copy(bytes, slot * SLOT_BYTES)
    const file = await disk.create(temporary)
    try {
      await file.write(bytes, 0)
      await file.sync()
    } finally {
      await file.close()
    }
    await disk.rename(temporary, MANIFEST)
    await disk.sync()
    return new ManifestFile(await disk.open(MANIFEST), SLOTS - 1)
  }

  static async open(disk: Disk): Promise<{ file: ManifestFile; manifest: Manifest }> {
    const file = await disk.open(MANIFEST)
    try {
      const size = await file.size()
      if (size !== SLOTS * SLOT_BYTES) {
        throw damaged(MANIFEST, size, `it has ${size} bytes instead of ${SLOTS * SLOT_BYTES}`)
      }
      const bytes = await file.read(0, size)
      // A dead process may have left the newer slot readable but not durable. The next write goes
      // to the other slot. Without this sync, a power failure could leave two slots that are not
      // neighbours.
      await file.sync()
      const [first, second] = [decode(bytes, 0), decode(bytes, 1)]
      const distance = Math.abs(first.generation - second.generation)
      if (distance !== 1 || first.manifest.storeId !== second.manifest.storeId) {
        throw damaged(MANIFEST, SLOT_BYTES, 'its two parts do not belong together')
      }
      const { generation, manifest } = first.generation > second.generation ? first : second
      return { file: new ManifestFile(file, generation), manifest }
    } catch (error) {
      await file.close().catch(() => {})
      throw error
    }
  }

  /** Durable when fulfilled. If it is rejected, the next write goes to the same slot. */
  async write(manifest: Manifest): Promise<void> {
    const generation = this.#generation + 1
    const position = (generation % SLOTS) * SLOT_BYTES
    await this.#file.writeDurably(encode(manifest, generation), position)
    this.#generation = generation
  }

  close(): Promise<void> {
    return this.#file.close()
  }
}

function encode(manifest: Manifest, generation: number): Buffer {
  const payload = new ByteWriter()
  putFormat(payload)
  payload.string(manifest.storeId)
  payload.byte(STATES.indexOf(manifest.state))
  payload.integer(manifest.snapshot)
  payload.integer(manifest.end.segment)
  payload.integer(manifest.end.offset)
  payload.integer(manifest.end.sequence)
  payload.integer(manifest.revision)
  payload.integer(manifest.ceiling)
  const sector = Buffer.alloc(SECTOR_BYTES)
  const fields = { kind: KIND.manifest, last: true, time: 0, sequence: generation, index: 0 }
  putFrame(sector, 0, 0, fields, payload.view(), 0)
  return sector
}

function decode(bytes: Buffer, slot: number): { generation: number; manifest: Manifest } {
  const at = slot * SLOT_BYTES
  const frame = readFrame(bytes, at, 0, KIND.manifest)
  if (!frame || frame.header.sequence % SLOTS !== slot) {
    throw damaged(MANIFEST, at, 'it does not match its checksum')
  }
  const reader = new ByteReader(frame.payload)
  checkFormat(reader.integer(), MANIFEST)
  const storeId = reader.string()
  const state = STATES[reader.byte()]!
  const snapshot = reader.integer()
  const end = { segment: reader.integer(), offset: reader.integer(), sequence: reader.integer() }
  const [revision, ceiling] = [reader.integer(), reader.integer()]
  return {
    generation: frame.header.sequence,
    manifest: { storeId, state, snapshot, end, revision, ceiling },
  }
}
