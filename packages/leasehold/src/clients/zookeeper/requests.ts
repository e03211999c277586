import type { Field, JuteReader } from './jute.ts'

/** ZooKeeper's codes of refusals, as far as a log tells them apart. */
export const CODE = {
  noNode: -101,
  noAuth: -102,
  badVersion: -103,
  nodeExists: -110,
  notEmpty: -111,
  authFailed: -115,
  quotaExceeded: -125,
} as const

/** ZooKeeper carried out the request and refused it. */
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

/** Who may use the nodes that are created: everyone, or whoever is authenticated as the creator. */
export type Access = 'everyone' | 'creator'

const ALL_RIGHTS = 31

/** Creates a node that stays. A sequential one gets the number of creations before it as its end. */
export function create(
  path: string,
  data: Uint8Array,
  access: Access,
  sequential = false,
): Request<string> {
  const [scheme, id] = access === 'creator' ? ['auth', ''] : ['world', 'anyone']
  const acl: Field[] = [{ int: 1 }, { int: ALL_RIGHTS }, scheme!, id!]
  const fields = [path, data, ...acl, { int: sequential ? 2 : 0 }]
  return { type: 1, fields, read: (reader) => reader.text() }
}

/** `version` -1 is any. */
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
  const read = (reader: JuteReader) => Array.from({ length: reader.int() }, () => reader.text())
  return { type: 8, fields: [path, { flag: false }], read }
}

/** In a transaction: the node must be there. */
export function check(path: string): Request<void> {
  return { type: 13, fields: [path, { int: -1 }], read: () => undefined }
}

/** A transaction: all requests are carried out, or none. */
export function multi(requests: readonly Request<unknown>[]): Request<void> {
  const fields = requests.flatMap(({ type, fields }) => [...header(type, false), ...fields])
  return { type: 14, fields: [...fields, ...header(-1, true)], read: readMulti }
}

/** Tells of everything that happens below a path until the connection ends. From 3.6 on. */
export function addWatch(path: string): Request<void> {
  return { type: 106, fields: [path, { int: 1 }], read: () => undefined }
}

function header(type: number, isLast: boolean): Field[] {
  return [{ int: type }, { flag: isLast }, { int: -1 }]
}

/** Only the first answer counts: it is an error in all of them if the transaction failed. */
function readMulti(reader: JuteReader): void {
  for (;;) {
    const type = reader.int()
    if (reader.flag()) return
    reader.int()
    if (type !== -1) return
    const code = reader.int()
    // Parts before the one that failed say 0.
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
  // The number that ZooKeeper shows counts creations and deletions.
  return { version, created: (changes + children) / 2 }
}
