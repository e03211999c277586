import { type JuteReader, JuteWriter } from './jute.ts'

/** ZooKeeper's codes of what went wrong, as far as this store tells them apart. */
export const CODE = {
  runtimeInconsistency: -2,
  connectionLoss: -4,
  noNode: -101,
  noAuth: -102,
  badVersion: -103,
  nodeExists: -110,
  notEmpty: -111,
  sessionExpired: -112,
  authFailed: -115,
} as const

const OP = {
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  getChildren: 8,
  sync: 9,
  getChildren2: 12,
  check: 13,
  multi: 14,
  create: 1,
  create2: 15,
  createContainer: 19,
  multiRead: 22,
  addWatch: 106,
  error: -1,
} as const

/** What ZooKeeper knows of a node beside its data. */
export interface Stat {
  /** The transactions that made it and that last set its data, and when the leader did so. */
  readonly czxid: number
  readonly mzxid: number
  readonly ctime: number
  readonly mtime: number
  readonly version: number
  readonly children: number
}

export interface NodeData {
  readonly data: Buffer
  readonly stat: Stat
}

/** A request as it is sent, and how its answer is read. */
export interface Request<R> {
  readonly type: number
  readonly isChange?: boolean | undefined
  /** About how large it is; 0 where it is surely small. */
  readonly bytes: number
  write(writer: JuteWriter): void
  read(reader: JuteReader): R
}

/** A request was carried out and refused; `index` says which part of a transaction it was. */
export class KeeperFault extends Error {
  readonly code: number
  readonly index: number

  constructor(code: number, index = -1) {
    super(`ZooKeeper answered ${code}`)
    this.code = code
    this.index = index
  }
}

export function isFault(error: unknown, ...codes: number[]): error is KeeperFault {
  return error instanceof KeeperFault && codes.includes(error.code)
}

export type NodeKind = 'persistent' | 'ephemeral' | 'sequential' | 'container'

const FLAGS: Record<NodeKind, number> = { persistent: 0, ephemeral: 1, sequential: 2, container: 4 }

/** One part of a transaction. */
export type Op =
  | { readonly do: 'create'; readonly path: string; readonly data: Buffer; readonly kind: NodeKind }
  | { readonly do: 'delete'; readonly path: string; readonly version?: number | undefined }
  | {
      readonly do: 'set'
      readonly path: string
      readonly data: Buffer
      readonly version?: number | undefined
    }
  | { readonly do: 'check'; readonly path: string; readonly version: number }

/** Who may do what with the nodes that are made: everyone, or whoever is authenticated as we are. */
export interface Acl {
  readonly scheme: string
  readonly id: string
}

export const OPEN: Acl = { scheme: 'world', id: 'anyone' }
export const CREATOR: Acl = { scheme: 'auth', id: '' }
const ALL_RIGHTS = 31

const TYPES: Record<Op['do'], number> = {
  create: OP.create,
  delete: OP.delete,
  set: OP.setData,
  check: OP.check,
}

/** What is told of a transaction. */
export interface Made {
  /** When the leader carried it out; known where the first part makes a node. */
  readonly at: number
}

/** A transaction: all of it, or nothing. */
export function multi(ops: readonly Op[], acl: Acl): Request<Made> {
  return {
    type: OP.multi,
    isChange: true,
    bytes: ops.reduce((sum, op) => sum + sizeOf(op), 0),
    write: (writer) => {
      for (const [index, op] of ops.entries()) {
        writer.int(typeOf(op, index)).boolean(false).int(-1)
        writeOp(writer, op, acl)
      }
      writer.int(-1).boolean(true).int(-1)
    },
    read: readMulti,
  }
}

/** Of the first node that is made, its numbers are answered too, and so the time. */
function typeOf(op: Op, index: number): number {
  if (op.do !== 'create') return TYPES[op.do]
  if (op.kind === 'container') return OP.createContainer
  return index === 0 ? OP.create2 : OP.create
}

export function sizeOf(op: Op): number {
  return 64 + op.path.length + ('data' in op ? op.data.length : 0)
}

function writeOp(writer: JuteWriter, op: Op, acl: Acl): void {
  writer.text(op.path)
  if (op.do === 'create') {
    writer.buffer(op.data)
    writer.int(1).int(ALL_RIGHTS).text(acl.scheme).text(acl.id)
    writer.int(FLAGS[op.kind])
    return
  }
  if (op.do === 'set') writer.buffer(op.data)
  writer.int(op.version ?? -1)
}

function readMulti(reader: JuteReader): Made {
  let at = 0
  for (let index = 0; ; index++) {
    const type = reader.int()
    const isDone = reader.boolean()
    reader.int()
    if (isDone) return { at }
    if (type === OP.create || type === OP.create2) reader.skip(reader.int())
    if (type === OP.create2 && index === 0) at = readStat(reader).ctime
    else if (type === OP.create2 || type === OP.setData) reader.skip(STAT_BYTES)
    if (type === OP.error) {
      const code = reader.int()
      // The parts before the one that failed say 0, those behind it that they were not tried.
      if (code !== 0) throw new KeeperFault(code, index)
    }
  }
}

/** What to read in one step: the data of a node, or the names of its children. */
export interface Look {
  readonly at: 'data' | 'children'
  readonly path: string
}

/** What was found; `undefined` where there is no such node. */
export interface Found {
  readonly data?: NodeData | undefined
  readonly children?: string[] | undefined
}

/** Several readings as one request, which the server carries out between two transactions. */
export function multiRead(looks: readonly Look[]): Request<Found[]> {
  return {
    type: OP.multiRead,
    bytes: looks.reduce((sum, { path }) => sum + 16 + path.length, 0),
    write: (writer) => {
      for (const { at, path } of looks) {
        writer
          .int(at === 'data' ? OP.getData : OP.getChildren)
          .boolean(false)
          .int(-1)
        writer.text(path).boolean(false)
      }
      writer.int(-1).boolean(true).int(-1)
    },
    read: readFound,
  }
}

function readFound(reader: JuteReader): Found[] {
  const found: Found[] = []
  for (;;) {
    const type = reader.int()
    const isDone = reader.boolean()
    reader.int()
    if (isDone) return found
    if (type === OP.getData) found.push({ data: readData(reader) })
    else if (type === OP.getChildren) found.push({ children: reader.texts() })
    else {
      const code = reader.int()
      if (code !== CODE.noNode) throw new KeeperFault(code, found.length)
      found.push({})
    }
  }
}

export function getData(path: string, watch: boolean): Request<NodeData> {
  return { type: OP.getData, bytes: 0, write: (w) => w.text(path).boolean(watch), read: readData }
}

export function exists(path: string, watch: boolean): Request<Stat> {
  return { type: OP.exists, bytes: 0, write: (w) => w.text(path).boolean(watch), read: readStat }
}

export function getChildren(path: string): Request<string[]> {
  return {
    type: OP.getChildren2,
    bytes: 0,
    write: (w) => w.text(path).boolean(false),
    read: (reader) => reader.texts(),
  }
}

/** Lets the server that we are connected to catch up with the leader. */
export function sync(path: string): Request<void> {
  return { type: OP.sync, bytes: 0, write: (w) => w.text(path), read: () => undefined }
}

/** Tells of everything that happens below a path, until the connection ends. */
export function addWatch(path: string): Request<void> {
  const recursive = 1
  return {
    type: OP.addWatch,
    bytes: 0,
    write: (w) => w.text(path).int(recursive),
    read: () => undefined,
  }
}

function readData(reader: JuteReader): NodeData {
  return { data: reader.buffer(), stat: readStat(reader) }
}

const STAT_BYTES = 68

function readStat(reader: JuteReader): Stat {
  const [czxid, mzxid, ctime, mtime] = [
    reader.number(),
    reader.number(),
    reader.number(),
    reader.number(),
  ]
  const version = reader.int()
  reader.skip(4 + 4 + 8 + 4)
  const children = reader.int()
  reader.skip(8)
  return { czxid, mzxid, ctime, mtime, version, children }
}

export function encodeRequest(xid: number, request: Request<unknown>): Buffer {
  const writer = new JuteWriter(64 + request.bytes).int(xid).int(request.type)
  request.write(writer)
  return writer.finish()
}
