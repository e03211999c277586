import {
  CODE,
  isFault,
  KeeperFault,
  type Request,
  ZookeeperClient,
} from '../../../src/logs/zookeeper/client/index.ts'
import { systemClock } from '../../../src/port/index.ts'

interface Node {
  readonly data: Uint8Array
  readonly version: number
  /** How many children were ever created. */
  readonly created: number
}

type Change = (tree: Tree) => unknown

const TYPE = { create: 1, remove: 2, exists: 3, getData: 4, setData: 5, getChildren: 8 } as const
const CHECK = 13
const MULTI = 14
/** How many fields each request has, within a transaction. */
const FIELDS: Record<number, number> = {
  [TYPE.create]: 7,
  [TYPE.remove]: 2,
  [TYPE.setData]: 3,
  [CHECK]: 2,
}

/** The committed entries of an ensemble. Each server applies them in order, and may be behind. */
export class FakeEnsemble {
  readonly changes: Change[] = []
  readonly leader = new Tree()
}

/**
 * A client of one server of the ensemble, which keeps exactly ZooKeeper's guarantees: it applies a
 * write before it answers it, and answers reads from its applied state. Nothing else makes it catch
 * up.
 */
export class LaggingClient extends ZookeeperClient {
  readonly #ensemble: FakeEnsemble
  readonly #tree = new Tree()
  #applied = 0

  constructor(ensemble: FakeEnsemble) {
    super({ servers: 'none:1', timeout: 1000, clock: systemClock })
    this.#ensemble = ensemble
  }

  override async call<Answer>(request: Request<Answer>): Promise<Answer> {
    const read = readOf(request)
    if (read) return read(this.#tree) as Answer
    const { changes, leader } = this.#ensemble
    const change = changeOf(request)
    try {
      const answer = change(leader)
      changes.push(change)
      return answer as Answer
    } finally {
      // A write that is refused has its place among the others, too.
      while (this.#applied < changes.length) changes[this.#applied++]!(this.#tree)
    }
  }
}

class Tree {
  readonly #nodes = new Map<string, Node>([['', { data: Buffer.of(), version: 0, created: 0 }]])

  get(path: string): Node {
    const node = this.#nodes.get(path)
    if (!node) throw new KeeperFault(CODE.noNode)
    return node
  }

  children(path: string): string[] {
    this.get(path)
    const names = [...this.#nodes.keys()].filter((name) => name.startsWith(`${path}/`))
    return names.map((name) => name.slice(path.length + 1)).filter((name) => !name.includes('/'))
  }

  create(path: string, data: Uint8Array, isSequential: boolean): string {
    const parent = path.slice(0, path.lastIndexOf('/'))
    const { created, ...above } = this.get(parent)
    const name = isSequential ? `${path}${`${created}`.padStart(10, '0')}` : path
    if (this.#nodes.has(name)) throw new KeeperFault(CODE.nodeExists)
    this.#nodes.set(parent, { ...above, created: created + 1 })
    this.#nodes.set(name, { data, version: 0, created: 0 })
    return name
  }

  set(path: string, data: Uint8Array, version: number): Node {
    const node = this.get(path)
    if (version >= 0 && version !== node.version) throw new KeeperFault(CODE.badVersion)
    const next = { ...node, data, version: node.version + 1 }
    this.#nodes.set(path, next)
    return next
  }

  remove(path: string): void {
    if (this.children(path).length > 0) throw new KeeperFault(CODE.notEmpty)
    this.#nodes.delete(path)
  }
}

function readOf({ type, fields }: Request<unknown>): Change | undefined {
  const path = fields[0] as string
  if (type === TYPE.exists) return (tree) => tree.get(path)
  if (type === TYPE.getChildren) return (tree) => tree.children(path)
  if (type === TYPE.getData) {
    return (tree) => ({ data: Buffer.from(tree.get(path).data), stat: tree.get(path) })
  }
  return undefined
}

function changeOf({ type, fields }: Pick<Request<unknown>, 'type' | 'fields'>): Change {
  const [path, data] = fields as [string, Uint8Array]
  const last = (fields.at(-1) as { int: number }).int
  if (type === TYPE.create) return (tree) => tree.create(path, data, last === 2)
  if (type === TYPE.setData) return (tree) => tree.set(path, data, last)
  if (type === TYPE.remove) return (tree) => tree.remove(path)
  if (type === CHECK) return (tree) => void tree.get(path)
  if (type !== MULTI) throw new Error(`request ${type} is not known here`)
  const parts: Change[] = []
  for (let at = 0; ; ) {
    const part = (fields[at] as { int: number }).int
    if (part < 0) return (tree) => all(parts, tree)
    const end = at + 3 + FIELDS[part]!
    parts.push(changeOf({ type: part, fields: fields.slice(at + 3, end) }))
    at = end
  }
}

/** Enough for the log's transactions, in which only the first part may fail. */
function all(parts: readonly Change[], tree: Tree): void {
  for (const [at, part] of parts.entries()) {
    try {
      part(tree)
    } catch (error) {
      if (at === 0 || isFault(error, CODE.nodeExists)) throw error
      throw new Error('a later part of a transaction failed', { cause: error })
    }
  }
}
