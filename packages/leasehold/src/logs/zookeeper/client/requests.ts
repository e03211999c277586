import type { Field, JuteReader } from './jute.ts'

/** ZooKeeper's error codes, as far as a log distinguishes them. */
export const CODE = {
  noNode: -101,
  noAuth: -102,
  badVersion: -103,
  nodeExists: -110,
  notEmpty: -111,
  authFailed: -115,
  quotaExceeded: -125,
} as const

/** ZooKeeper refused the request. */
export class KeeperFault extends Error {
  readonly code: number

  constructor(code: number) {
    super(`ZooKeeper answered ${code}`)
    this.code = code
  }
}

export function isFault(error: unknown, ...codes: number[]): error is KeeperFault {
  return error instanceof KeeperFault && codes.includes(error.code)
}

/** A request as it is sent, and how its answer is read. */
export interface Request<Answer> {
  readonly type: number
  readonly fields: readonly Field[]
  read(reader: JuteReader): Answer
}

export interface Stat {
  readonly version: number
  /** How many children were ever created. */
  readonly created: number
}

export interface NodeData {
  readonly data: Buffer
  readonly stat: Stat
}

/** Who may use created nodes: everyone, or clients with the same authentication as the creator. */
export type Access = 'everyone' | 'creator'

const ALL_RIGHTS = 31

/** Creates a persistent node. A sequential name ends with the number of earlier creations. */
export function create(
  path: string,
  data: Uint8Array,
  access: Access,
  sequential = false,
): Request<string> {
  const [scheme, id] = access === 'creator' ? ['auth', ''] : ['world', 'anyone']
  const acl: Field[] = [{ int: 1 }, { int: ALL_RIGHTS }, scheme!, id!]
  const fields = [path, data, ...acl, { int: sequential ? 2 : 0 }]
  return { type: 1, fields, read: (reader) => reader.string() }
}

/** `version` -1 matches any version. */
export function remove(path: string, version = -1): Request<void> {
  return { type: 2, fields: [path, { int: version }], read: () => undefined }
}

export function exists(path: string): Request<Stat> {
  return { type: 3, fields: [path, { flag: false }], read: readStat }
}

export function getData(path: string): Request<NodeData> {
  const read = (reader: JuteReader) => ({ data: reader.bytes(), stat: readStat(reader) })
  return { type: 4, fields: [path, { flag: false }], read }
}

export function setData(path: string, data: Uint8Array, version = -1): Request<Stat> {
  return { type: 5, fields: [path, data, { int: version }], read: readStat }
}

export function getChildren(path: string): Request<string[]> {
  const read = (reader: JuteReader) => Array.from({ length: reader.int() }, () => reader.string())
  return { type: 8, fields: [path, { flag: false }], read }
}

/** A condition in a transaction: the node must exist. */
export function check(path: string): Request<void> {
  return { type: 13, fields: [path, { int: -1 }], read: () => undefined }
}

/** A transaction: ZooKeeper carries out all requests or none. */
export function multi(requests: readonly Request<unknown>[]): Request<void> {
  const fields = requests.flatMap(({ type, fields }) => [...header(type, false), ...fields])
  return { type: 14, fields: [...fields, ...header(-1, true)], read: readMulti }
}

/** Watches everything below a path until the connection ends. ZooKeeper 3.6 or later. */
export function addWatch(path: string): Request<void> {
  return { type: 106, fields: [path, { int: 1 }], read: () => undefined }
}

function header(type: number, isLast: boolean): Field[] {
  return [{ int: type }, { flag: isLast }, { int: -1 }]
}

/** Reads up to the first success or error: if the transaction failed, all parts have an error. */
function readMulti(reader: JuteReader): void {
  for (;;) {
    const type = reader.int()
    if (reader.flag()) return
    reader.int()
    if (type !== -1) return
    const code = reader.int()
    // Parts before the one that failed have code 0.
    if (code !== 0) throw new KeeperFault(code)
  }
}

function readStat(reader: JuteReader): Stat {
  reader.skip(32)
  const version = reader.int()
  const changes = reader.int()
  reader.skip(16)
  const children = reader.int()
  reader.skip(8)
  // ZooKeeper's number of changes counts creations and deletions.
  return { version, created: (changes + children) / 2 }
}
