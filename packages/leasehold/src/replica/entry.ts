import { ByteReader, ByteWriter, putLabels, takeLabels } from '../encoding/index.ts'
import type { ExpiryCause } from '../kernel/index.ts'
import type { Position } from '../log/index.ts'
import type {
  ClaimRequest,
  ClaimSpec,
  GrantRequest,
  LeaseId,
  Limits,
  ReleaseRequest,
  Revision,
  RevokeRequest,
  RevokeTarget,
  UpdateRequest,
} from '../port/index.ts'
import { checkFormat } from './faults.ts'

/** What a member asks of all replicas. They carry out commands in the order of the log. */
export type Command =
  /** Starts a log; only the first one counts. Sets its limits, first token and version of the rules. */
  | {
      readonly do: 'initialize'
      readonly limits: Limits
      readonly above: Revision
      readonly semantics: number
    }
  /** The author becomes a member. It knows the rules up to this version. */
  | { readonly do: 'join'; readonly semantics: number }
  /** The log has lost entries: tokens continue above this number, and all members join again. */
  | { readonly do: 'recover'; readonly above: Revision }
  /** From here on this version of the rules applies, if all members know it. */
  | { readonly do: 'upgrade'; readonly semantics: number }
  | { readonly do: 'leave' }
  /** Removes these members, because they wrote nothing for too long. */
  | { readonly do: 'expel'; readonly members: readonly string[] }
  | { readonly do: 'grant'; readonly request: GrantRequest }
  | { readonly do: 'claim'; readonly request: ClaimRequest }
  | { readonly do: 'release'; readonly request: ReleaseRequest }
  | { readonly do: 'update'; readonly request: UpdateRequest }
  | { readonly do: 'revoke'; readonly request: RevokeRequest }
  /**
   * Renews the leases in these slots, in ascending order, and by id those that the member does not
   * know (yet). `lives` has the slots of leases with a limited life, and how many milliseconds are left
   * by the member's own count.
   */
  | {
      readonly do: 'renew'
      readonly slots: readonly number[]
      readonly lives: ReadonlyMap<number, number>
      readonly ids: readonly LeaseId[]
    }
  /** Ends the leases in these slots, unless they were renewed after `Entry.asOf`. */
  | { readonly do: 'expire'; readonly slots: readonly number[]; readonly cause: ExpiryCause }

/** One append of a member: everything that its callers asked for since the previous one. */
export interface Entry {
  /** The epoch that it belongs to. Entries of another epoch are ignored. */
  readonly epoch: string
  readonly member: string
  /** Counts the entries of this member, so that a second copy is recognized. */
  readonly sequence: number
  /** The last position that the member had applied when it wrote this, and its state there. */
  readonly asOf: Position
  readonly history: number
  readonly revision: Revision
  /** The member's checksum as of that position. */
  readonly checksum: number
  /** The time of the log, in milliseconds, as the member estimates it. */
  readonly time: number
  readonly commands: readonly Command[]
}

/** Encoded commands: their count, and their bytes one after the other, in one or more parts. */
export interface EncodedCommands {
  readonly count: number
  readonly parts: readonly Uint8Array[]
}

/** An entry whose commands are already encoded. */
export type EntryParts = Omit<Entry, 'commands'> & { readonly commands: EncodedCommands }

/** Every entry begins with these two letters and the format of the rest. */
const [FIRST, SECOND] = [0x4c, 0x48]
const FORMAT = 1

/** The index is stored in the log: never change the order, only add. */
const KINDS = [
  ...['initialize', 'join', 'leave', 'expel', 'grant', 'claim', 'release', 'update', 'revoke'],
  ...['renew', 'expire', 'recover', 'upgrade'],
] as readonly Command['do'][]

/** The most bytes of an entry without its commands. */
export const HEADER_BYTES = 512

export function encodeEntry(entry: EntryParts): Uint8Array {
  const bytes = new ByteWriter(HEADER_BYTES)
  bytes.byte(FIRST)
  bytes.byte(SECOND)
  bytes.byte(FORMAT)
  bytes.string(entry.epoch)
  bytes.string(entry.member)
  bytes.integer(entry.sequence)
  bytes.integer(entry.asOf)
  bytes.integer(entry.history)
  bytes.integer(entry.revision)
  bytes.integer(entry.checksum)
  bytes.float(entry.time)
  bytes.integer(entry.commands.count)
  return Buffer.concat([bytes.view(), ...entry.commands.parts])
}

/**
 * Returns `undefined` for bytes that Leasehold did not write. Throws `unsupported` if a newer version
 * wrote them, and a `RangeError` if they are damaged.
 */
export function decodeEntry(data: Uint8Array): Entry | undefined {
  const bytes = new ByteReader(Buffer.from(data.buffer, data.byteOffset, data.byteLength))
  if (data.length < 3 || bytes.byte() !== FIRST || bytes.byte() !== SECOND) return undefined
  checkFormat('an entry', bytes.byte(), FORMAT)
  const epoch = bytes.string()
  const member = bytes.string()
  const [sequence, asOf, history] = [bytes.integer(), bytes.integer(), bytes.integer()]
  const [revision, checksum] = [bytes.integer(), bytes.integer()]
  const time = bytes.float()
  const commands = list(bytes, takeCommand)
  return { epoch, member, sequence, asOf, history, revision, checksum, time, commands }
}

export function encodeCommands(commands: readonly Command[]): EncodedCommands {
  const bytes = new ByteWriter(128)
  for (const command of commands) putCommand(bytes, command)
  return { count: commands.length, parts: [bytes.view()] }
}

export function putCommand(bytes: ByteWriter, command: Command): void {
  bytes.byte(KINDS.indexOf(command.do))
  switch (command.do) {
    case 'initialize':
      bytes.string(JSON.stringify(command.limits))
      bytes.integer(command.above)
      bytes.integer(command.semantics)
      break
    case 'join':
    case 'upgrade':
      bytes.integer(command.semantics)
      break
    case 'recover':
      bytes.integer(command.above)
      break
    case 'expel':
      putList(bytes, command.members, (member) => bytes.string(member))
      break
    case 'grant':
      putGrant(bytes, command.request)
      break
    case 'claim':
      putClaim(bytes, command.request)
      break
    case 'release':
      bytes.optionalString(command.request.request)
      bytes.string(command.request.lease)
      bytes.integer(command.request.token)
      putList(bytes, command.request.keys, (key) => bytes.string(key))
      break
    case 'update':
      bytes.optionalString(command.request.request)
      bytes.string(command.request.lease)
      bytes.integer(command.request.token)
      bytes.string(command.request.key)
      bytes.optionalString(command.request.value)
      break
    case 'revoke':
      putRevoke(bytes, command.request)
      break
    case 'renew':
      putSlots(bytes, command.slots)
      putSlots(bytes, [...command.lives.keys()])
      for (const left of command.lives.values()) bytes.number(left)
      putList(bytes, command.ids, (id) => bytes.string(id))
      break
    case 'expire':
      bytes.byte(command.cause === 'life' ? 1 : 0)
      putSlots(bytes, command.slots)
  }
}

function takeCommand(bytes: ByteReader): Command {
  const kind = bytes.byte()
  const what = KINDS[kind]
  switch (what) {
    case 'initialize': {
      const limits = JSON.parse(bytes.string()) as Limits
      return { do: what, limits, above: bytes.integer(), semantics: bytes.integer() }
    }
    case 'join':
    case 'upgrade':
      return { do: what, semantics: bytes.integer() }
    case 'recover':
      return { do: what, above: bytes.integer() }
    case 'leave':
      return { do: what }
    case 'expel':
      return { do: what, members: list(bytes, () => bytes.string()) }
    case 'grant':
      return { do: what, request: takeGrant(bytes) }
    case 'claim':
      return { do: what, request: takeClaim(bytes) }
    case 'release': {
      const [request, lease, token] = [bytes.optionalString(), bytes.string(), bytes.integer()]
      return {
        do: what,
        request: { request, lease, token, keys: list(bytes, () => bytes.string()) },
      }
    }
    case 'update': {
      const [request, lease, token] = [bytes.optionalString(), bytes.string(), bytes.integer()]
      const [key, value] = [bytes.string(), bytes.optionalString()]
      return { do: what, request: { request, lease, token, key, value } }
    }
    case 'revoke':
      return { do: what, request: takeRevoke(bytes) }
    case 'renew': {
      const slots = takeSlots(bytes)
      const lives = new Map(takeSlots(bytes).map((slot) => [slot, 0]))
      for (const slot of lives.keys()) lives.set(slot, bytes.number())
      return { do: what, slots, lives, ids: list(bytes, () => bytes.string()) }
    }
    case 'expire':
      return { do: what, cause: bytes.byte() === 1 ? 'life' : 'ttl', slots: takeSlots(bytes) }
    default:
      throw new RangeError(`a command has the unknown kind ${kind}`)
  }
}

function putGrant(bytes: ByteWriter, request: GrantRequest): void {
  bytes.optionalString(request.request)
  bytes.string(request.holder)
  bytes.number(request.ttl)
  bytes.number(request.grace ?? 0)
  bytes.number(request.maxLife ?? Infinity)
  bytes.optionalString(request.parent)
  putLabels(bytes, request.labels)
  bytes.byte(request.ifFree ? 1 : 0)
  // No list is not the same as an empty list, which is refused.
  bytes.byte(request.claims ? 1 : 0)
  if (request.claims) putList(bytes, request.claims, (spec) => putSpec(bytes, spec))
}

function takeGrant(bytes: ByteReader): GrantRequest {
  const request = bytes.optionalString()
  const holder = bytes.string()
  const [ttl, grace, maxLife] = [bytes.number(), bytes.number(), bytes.number()]
  const parent = bytes.optionalString()
  const labels = takeLabels(bytes)
  const ifFree = bytes.byte() === 1
  const claims = bytes.byte() === 1 ? list(bytes, takeSpec) : undefined
  return { request, holder, ttl, grace, maxLife, parent, labels, ifFree, claims }
}

/** The flags of a claim. */
const IF_FREE = 1
const REPLACES = 2

function putClaim(bytes: ByteWriter, request: ClaimRequest): void {
  bytes.optionalString(request.request)
  bytes.string(request.lease)
  bytes.byte((request.ifFree ? IF_FREE : 0) | (request.replaces === undefined ? 0 : REPLACES))
  if (request.replaces !== undefined) bytes.integer(request.replaces)
  putList(bytes, request.claims, (spec) => putSpec(bytes, spec))
}

function takeClaim(bytes: ByteReader): ClaimRequest {
  const [request, lease, flags] = [bytes.optionalString(), bytes.string(), bytes.byte()]
  const replaces = (flags & REPLACES) === 0 ? undefined : bytes.integer()
  const ifFree = (flags & IF_FREE) !== 0
  return { request, lease, ifFree, replaces, claims: list(bytes, takeSpec) }
}

function putSpec(bytes: ByteWriter, spec: ClaimSpec): void {
  bytes.string(spec.key)
  bytes.byte(spec.mode === 'shared' ? 1 : 0)
  bytes.integer(spec.limit ?? 0)
  bytes.optionalString(spec.value)
}

function takeSpec(bytes: ByteReader): ClaimSpec {
  const key = bytes.string()
  const mode = bytes.byte() === 1 ? 'shared' : 'exclusive'
  const limit = bytes.integer()
  return { key, mode, limit: limit === 0 ? undefined : limit, value: bytes.optionalString() }
}

const TARGETS = ['lease', 'parent', 'prefix', 'key'] as const

function putRevoke(bytes: ByteWriter, { request, target, by, why, after }: RevokeRequest): void {
  bytes.optionalString(request)
  const named = target as unknown as Record<string, string>
  const kind = TARGETS.find((each) => named[each] !== undefined)!
  bytes.byte(TARGETS.indexOf(kind))
  bytes.string(named[kind]!)
  // Tokens start at 1, so 0 means none.
  bytes.integer(('token' in target && target.token) || 0)
  bytes.optionalString(by)
  bytes.optionalString(why)
  bytes.number(after ?? 0)
}

function takeRevoke(bytes: ByteReader): RevokeRequest {
  const request = bytes.optionalString()
  const kind = TARGETS[bytes.byte()]!
  const name = bytes.string()
  const token = bytes.integer()
  const target = { [kind]: name, ...(token > 0 && { token }) } as unknown as RevokeTarget
  const [by, why] = [bytes.optionalString(), bytes.optionalString()]
  const after = bytes.number()
  return { request, target, by, why, ...(after > 0 && { after }) } as RevokeRequest
}

/**
 * Ascending slots as runs: the distance to the next run, and its length. The leases of one process
 * are often adjacent, and then a hundred thousand of them take a few bytes.
 */
function putSlots(bytes: ByteWriter, slots: readonly number[]): void {
  const runs: number[] = []
  let next = 0
  for (let at = 0; at < slots.length; ) {
    const first = slots[at]!
    // If such slots were written, no replica could read the log.
    if (first < next) throw new Error(`slot ${first} comes after slot ${next - 1}: sort the slots`)
    let end = at + 1
    while (end < slots.length && slots[end] === first + end - at) end++
    runs.push(first - next, end - at)
    next = first + end - at
    at = end
  }
  bytes.integer(runs.length / 2)
  for (const number of runs) bytes.integer(number)
}

function takeSlots(bytes: ByteReader): number[] {
  const slots: number[] = []
  let next = 0
  for (let runs = bytes.integer(); runs > 0; runs--) {
    next += bytes.integer()
    for (let length = bytes.integer(); length > 0; length--) slots.push(next++)
  }
  return slots
}

function putList<T>(bytes: ByteWriter, items: readonly T[], put: (item: T) => void): void {
  bytes.integer(items.length)
  for (const item of items) put(item)
}

function list<T>(bytes: ByteReader, take: (bytes: ByteReader) => T): T[] {
  const items: T[] = []
  for (let left = bytes.integer(); left > 0; left--) items.push(take(bytes))
  return items
}
