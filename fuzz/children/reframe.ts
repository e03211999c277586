import { changed, type Edit } from '../edits.ts'
import { frames, segments } from './internals.ts'

const { putFrame, readHeader, readPayload, extentOf } = await frames()
const { seedOf, SEGMENT_START } = await segments()

type Header = import('../../packages/leasehold/src/stores/file/log/frame.ts').Header

interface Frame {
  readonly header: Header
  readonly payload: Buffer
}

type PayloadEdit = Extract<Edit, { op: 'payload' }>

/** Changes the payload of one frame and rewrites its file with right checksums. */
export function editPayload(files: Map<string, Buffer>, edit: PayloadEdit): void {
  const names = [...files.keys()].filter((name) => /^(log|snapshot)-\d+$/.test(name)).sort()
  const all = names.map((name) => ({ name, frames: framesOf(name, files.get(name)!) }))
  const count = all.reduce((sum, file) => sum + file.frames.length, 0)
  if (count === 0) return
  let at = edit.frame % count
  for (const file of all) {
    if (at < file.frames.length) {
      const { header, payload } = file.frames[at]!
      const next = changed(payload, edit.way, edit.at, edit.length, edit.value)
      const list = file.frames.with(at, { header, payload: next.subarray(0, 60_000) })
      files.set(file.name, joined(file.name, files.get(file.name)!, list))
      return
    }
    at -= file.frames.length
  }
}

function framesOf(name: string, bytes: Buffer): Frame[] {
  const found: Frame[] = []
  let at = 0
  let seed = 0
  while (at < bytes.length) {
    const header = readHeader(bytes, at, seed)
    if (typeof header === 'string') break
    const payload = readPayload(bytes, at, header, seed)
    if (payload === undefined) break
    found.push({ header, payload })
    if (at === 0) seed = seedIn(payload)
    at = at === 0 && name.startsWith('log') ? SEGMENT_START : at + extentOf(header.length)
  }
  return found
}

/** The first frame names the store: its format, then the id with its length. */
function seedIn(payload: Buffer): number {
  const length = payload[1] ?? 0
  return seedOf(payload.subarray(2, 2 + length).toString())
}

function joined(name: string, old: Buffer, list: readonly Frame[]): Buffer {
  const isLog = name.startsWith('log')
  const bytes = Buffer.alloc(old.length + 70_000)
  const seed = seedIn(list[0]!.payload)
  let at = 0
  for (const [index, { header, payload }] of list.entries()) {
    if (at + extentOf(payload.length) > bytes.length) break
    const extent = putFrame(bytes, at, at, header, payload, index === 0 ? 0 : seed)
    at = index === 0 && isLog ? SEGMENT_START : at + extent
  }
  return bytes.subarray(0, isLog ? Math.max(old.length, at) : at)
}
