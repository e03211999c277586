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

/** What a member asks of all replicas. The order in which the log has them is the order in time. */
export type Command =
  /** Begins a log. Only the first one counts. Tokens are above a number, and the rules have a version. */
  | {
      readonly do: 'found'
      readonly limits: Limits
      readonly above: Revision
      readonly semantics: number
    }
  /** Its author becomes a member, which knows the rules up to this version. */
  | { readonly do: 'join'; readonly semantics: number }
  /** The log has lost entries: tokens go on above this number, and all members join again. */
  | { readonly do: 'recover'; readonly above: Revision }
  /** From here on the rules of this version apply, if all members know them. */
  | { readonly do: 'upgrade'; readonly semantics: number }
  | { readonly do: 'leave' }
  /** These members were not heard of for so long that they are taken for dead. */
  | { readonly do: 'expel'; readonly members: readonly string[] }
  | { readonly do: 'grant'; readonly request: GrantRequest }
  | { readonly do: 'claim'; readonly request: ClaimRequest }
  | { readonly do: 'release'; readonly request: ReleaseRequest }
  | { readonly do: 'update'; readonly request: UpdateRequest }
  | { readonly do: 'revoke'; readonly request: RevokeRequest }
  /**
   * The leases in these slots, which rise, and those that their member does not know (yet). `lives`
   * has each slot whose lease has a limited life, and how many milliseconds are left of it by the
   * member's own count.
   */
  | {
      readonly do: 'renew'
      readonly slots: readonly number[]
      readonly lives: ReadonlyMap<number, number>
      readonly ids: readonly LeaseId[]
    }
  /** The time of the leases in these slots is over, unless they were renewed after `Entry.asOf`. */
  | { readonly do: 'expire'; readonly slots: readonly number[]; readonly over: ExpiryCause }

/** What one member appends at a time: everything that its callers asked for since the last one. */
export interface Entry {
  /** The history that it belongs to. An entry of another one is ignored. */
  readonly epoch: string
  readonly member: string
  /** Counts the entries of this member, so that a second copy is known. */
  readonly sequence: number
  /** The last position that the member had applied when it wrote this, and what was so there. */
  readonly asOf: Position
  readonly history: number
  readonly revision: Revision
  /** The member's checksum as of that position. */
  readonly checksum: number
  /** The time of the log, in milliseconds, as the member reckons it. */
  readonly time: number
  readonly commands: readonly Command[]
}

/** Commands in bytes: how many, and the bytes of all in a row, in one part or several. */
export interface EncodedCommands {
  readonly count: number
  readonly parts: readonly Uint8Array[]
}

/** An entry whose commands are in bytes already. */
export type EntryParts = Omit<Entry, 'commands'> & { readonly commands: EncodedCommands }

/** Every entry begins with these two letters, and with the format of the rest. */
const [FIRST, SECOND] = [0x4c, 0x48]
const FORMAT = 1

/** In the log: never change the place of one, only add. */
const KINDS = [
  ...['found', 'join', 'leave', 'expel', 'grant', 'claim', 'release', 'update', 'revoke', 'renew'],
  ...['expire', 'recover', 'upgrade'],
] as readonly Command['do'][]

/** No entry has more bytes beside its commands. */
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
    case 'found':
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
      bytes.byte(command.over === 'life' ? 1 : 0)
      putSlots(bytes, command.slots)
  }
}

function takeCommand(bytes: ByteReader): Command {
  const kind = bytes.byte()
  const what = KINDS[kind]
  switch (what) {
    case 'found': {
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
      return { do: what, over: bytes.byte() === 1 ? 'life' : 'ttl', slots: takeSlots(bytes) }
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
  // None at all is not the same as an empty list, which is refused.
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

function putClaim(bytes: ByteWriter, request: ClaimRequest): void {
  bytes.optionalString(request.request)
  bytes.string(request.lease)
  bytes.byte(request.ifFree ? 1 : 0)
  putList(bytes, request.claims, (spec) => putSpec(bytes, spec))
}

function takeClaim(bytes: ByteReader): ClaimRequest {
  const [request, lease] = [bytes.optionalString(), bytes.string()]
  const ifFree = bytes.byte() === 1
  return { request, lease, ifFree, claims: list(bytes, takeSpec) }
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
  // Tokens begin with 1.
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
 * Slots that rise, as runs: the distance to the next run and its length. The leases of one process
 * are often side by side, and then a hundred thousand of them take a few bytes.
 */
function putSlots(bytes: ByteWriter, slots: readonly number[]): void {
  const runs: number[] = []
  let next = 0
  for (let at = 0; at < slots.length; ) {
    const first = slots[at]!
    // Written all the same, nobody could read the log any more.
    if (first < next) throw new Error(`slot ${first} comes after slot ${next - 1}: slots must rise`)
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
