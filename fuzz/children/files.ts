import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type FileStoreOptions, fileStore } from 'leasehold/file'
import { isLeaseholdError, type LeaseStore } from 'leasehold/port'
import { changed, type Edit, type FileInput, TEMPLATES } from '../edits.ts'
import type { Failure } from '../failure.ts'
import { MemoryDisk } from './memory-disk.ts'
import { describe, Probe } from './probe.ts'
import { editPayload } from './reframe.ts'
import { LIMITS, type Made, makeTemplate, stateOf } from './templates.ts'

/** The codes with which opening a store may fail. */
const REFUSALS = new Set([
  'storage-damaged',
  'storage-failed',
  'storage-locked',
  'unsupported',
  'invalid-argument',
])
const OPEN_MS = 8000
const SEGMENT_BYTES = 8 << 10

const probe = new Probe()
const isReal = process.argv[3] === 'folder'
const made = new Map<string, Made>()
for (const template of TEMPLATES) made.set(template, await makeTemplate(template))
process.on('disconnect', () => process.exit())
probe.serve(run)
probe.ready({})

async function run({ template, edits }: FileInput): Promise<Failure | undefined> {
  const { files, states } = made.get(template)!
  const damaged = new Map([...files].map(([name, bytes]) => [name, Buffer.from(bytes)]))
  for (const edit of edits) damage(damaged, edit)
  // Check this before opening: a store fills an empty folder.
  const hasData = damaged.size > 0
  const specials = edits.filter((edit) => edit.op === 'special')
  const folder = isReal ? writeFolder(damaged, specials) : 'memory'
  const more: FileStoreOptions = isReal ? {} : { disk: new MemoryDisk(damaged) }
  const options = { ...more, segmentBytes: SEGMENT_BYTES, limits: LIMITS }
  try {
    const first = await opened(folder, options)
    if (!isStore(first)) return first
    const isWhole = edits.every(({ op }) => op !== 'payload' && op !== 'special')
    const loss = isWhole && hasData ? await lossOf(first, states) : undefined
    const broken = loss ?? (await use(first))
    if (broken) return broken
    const second = await opened(folder, options, true)
    if (!isStore(second)) return second
    await second.close()
    return undefined
  } finally {
    if (isReal) rmSync(folder, { recursive: true, force: true })
  }
}

/** The store; `undefined` if the refusal is right; or a failure. */
async function opened(
  folder: string,
  options: FileStoreOptions,
  mustOpen = false,
): Promise<LeaseStore | Failure | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<Failure>((resolve) => {
    const failure: Failure = { kind: 'hang', detail: `opening took longer than ${OPEN_MS} ms` }
    timer = setTimeout(() => resolve(failure), OPEN_MS)
  })
  try {
    return await Promise.race([fileStore(folder, options), late])
  } catch (error) {
    if (mustOpen)
      return {
        kind: 'wrong-error',
        detail: `the store opened once, but not a second time: ${describe(error)}`,
      }
    if (isLeaseholdError(error) && REFUSALS.has(error.code)) return undefined
    return { kind: 'wrong-error', detail: describe(error) }
  } finally {
    clearTimeout(timer)
  }
}

function isStore(result: LeaseStore | Failure | undefined): result is LeaseStore {
  return result !== undefined && 'grant' in result
}

/**
 * A damaged store that opens must still contain what it contained. Only its last change may be
 * missing, because damage to it looks like a write that a power failure interrupted.
 */
async function lossOf(store: LeaseStore, states: Made['states']): Promise<Failure | undefined> {
  const state = await stateOf(store)
  if (states.slice(-2).some(({ contents }) => contents === state.contents)) return undefined
  const last = states.at(-1)!.revision
  await store.close()
  return {
    kind: 'silent-loss',
    detail: `revision ${state.revision} of ${last} without an error`,
  }
}

/** A store that opens must work, whatever it contains. A refusal is a valid answer. */
async function use(store: LeaseStore): Promise<Failure | undefined> {
  try {
    await stateOf(store)
    const granted = await store.grant({
      holder: 'fuzz',
      ttl: 60_000,
      claims: [{ key: 'fuzz/key' }],
    })
    if (granted.outcome === 'granted') {
      await store.renew([granted.lease])
      await store.revoke({ target: { lease: granted.lease }, by: 'fuzz', why: 'done' })
    }
    await store.read({ history: 'a/1' })
    await store.close()
    return undefined
  } catch (error) {
    await store.close().catch(() => {})
    if (isLeaseholdError(error)) return undefined
    return { kind: 'wrong-error', detail: `the opened store failed: ${describe(error)}` }
  }
}

function damage(files: Map<string, Buffer>, edit: Edit): void {
  if (edit.op === 'special') return
  if (edit.op === 'payload') {
    editPayload(files, edit)
    return
  }
  const names = [...files.keys()].sort()
  if (names.length === 0) return
  const name = names[edit.file % names.length]!
  const bytes = files.get(name)!
  switch (edit.op) {
    case 'bytes': {
      // Most of a segment is unused zeros.
      const at = edit.at % (usedOf(bytes) + 64)
      const next = changed(bytes, edit.way, at, edit.length, edit.value)
      files.set(name, next)
      break
    }
    case 'cut':
      files.set(name, Buffer.from(bytes.subarray(0, edit.at % (bytes.length + 1))))
      break
    case 'grow':
      files.set(name, Buffer.concat([bytes, Buffer.alloc(edit.at % 5000)]))
      break
    case 'delete':
      files.delete(name)
      break
    case 'double':
      files.set(nextName(name), Buffer.from(bytes))
      break
    default: {
      const other = names[edit.other % names.length]!
      const theirs = files.get(other)!
      files.set(name, Buffer.from(theirs))
      if (edit.op === 'swap') files.set(other, bytes)
    }
  }
}

function usedOf(bytes: Buffer): number {
  let end = bytes.length
  while (end > 0 && bytes[end - 1] === 0) end--
  return end
}

function nextName(name: string): string {
  return name.replace(/\d+$/, (digits) => String(Number(digits) + 1).padStart(8, '0'))
}

function writeFolder(files: ReadonlyMap<string, Buffer>, specials: readonly Edit[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-fuzz-'))
  for (const [name, bytes] of files) writeFileSync(join(folder, name), bytes)
  for (const special of specials) if (special.op === 'special') putSpecial(folder, special)
  return folder
}

function putSpecial(
  folder: string,
  { name, kind, text = '' }: Extract<Edit, { op: 'special' }>,
): void {
  const path = join(folder, name)
  rmSync(path, { recursive: true, force: true })
  if (kind === 'fifo') execFileSync('mkfifo', [path])
  else if (kind === 'folder') mkdirSync(path)
  else if (kind === 'link') symlinkSync(join(folder, 'log-00000001'), path)
  else if (kind === 'dead-link') symlinkSync(join(folder, 'nothing'), path)
  else writeFileSync(path, text)
  if (kind === 'unreadable') chmodSync(path, 0)
}
