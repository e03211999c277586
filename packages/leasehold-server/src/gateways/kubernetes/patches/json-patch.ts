import { isDeepStrictEqual } from 'node:util'
import { badRequest, Refusal } from '../status.ts'
import { isObject } from './merge-patch.ts'

interface Operation {
  readonly op: string
  readonly path: readonly string[]
  readonly from: readonly string[]
  readonly value: unknown
}

const OPERATIONS_MAX = 1000
/** Each copy can double the object. One of a Lease with 64 KiB has fewer values than this. */
const COPIED_MAX = 50_000

/** RFC 6902: a list of operations, of which all are done or none. */
export function jsonPatch(target: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch)) throw badRequest('a JSON patch must be a list of operations')
  if (patch.length > OPERATIONS_MAX) {
    throw badRequest(`the patch has ${patch.length} operations: at most ${OPERATIONS_MAX}`)
  }
  return new Patched(target).after(patch.map(read))
}

/**
 * A copy of the object, which the operations change in place: a copy for each operation would cost
 * the product of their number and of the size of the object.
 */
class Patched {
  readonly #target: unknown
  #copied = 0

  constructor(target: unknown) {
    this.#target = structuredClone(target)
  }

  after(operations: readonly Operation[]): unknown {
    for (const operation of operations) this.#apply(operation)
    return this.#target
  }

  #apply({ op, path, from, value }: Operation): void {
    switch (op) {
      case 'add':
        this.#add(path, structuredClone(value))
        break
      case 'remove':
        this.#remove(path)
        break
      case 'replace':
        this.#remove(path)
        this.#add(path, structuredClone(value))
        break
      case 'copy':
        this.#add(path, this.#copyOf(this.#find(from)))
        break
      case 'move': {
        const moved = this.#find(from)
        this.#remove(from)
        this.#add(path, moved)
        break
      }
      case 'test':
        if (isDeepStrictEqual(this.#find(path), value)) break
        throw failed(path, 'the test failed')
      default:
        throw badRequest(`the operation ${JSON.stringify(op).slice(0, 64)} does not exist`)
    }
  }

  #add(path: readonly string[], value: unknown): void {
    const { parent, name } = this.#parentOf(path)
    if (Array.isArray(parent)) {
      parent.splice(name === '-' ? parent.length : indexIn(parent, name), 0, value)
    } else if (isObject(parent)) {
      // A plain assignment of `__proto__` would not add a member.
      const member = { value, writable: true, enumerable: true, configurable: true }
      Object.defineProperty(parent, name, member)
    } else throw failed([name], 'its parent is neither an object nor a list')
  }

  #remove(path: readonly string[]): void {
    const { parent, name } = this.#parentOf(path)
    child(parent, name)
    if (Array.isArray(parent)) parent.splice(Number(name), 1)
    else delete (parent as Record<string, unknown>)[name]
  }

  #find(path: readonly string[]): unknown {
    return path.reduce(child, this.#target)
  }

  #parentOf(path: readonly string[]) {
    const name = path.at(-1)
    if (name === undefined) throw badRequest('an operation must not change the whole object')
    return { parent: this.#find(path.slice(0, -1)), name }
  }

  #copyOf(value: unknown): unknown {
    if (++this.#copied > COPIED_MAX) {
      throw badRequest(`the patch copies more than ${COPIED_MAX} values`)
    }
    if (Array.isArray(value)) return value.map((each) => this.#copyOf(each))
    if (!isObject(value)) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, each]) => [name, this.#copyOf(each)]),
    )
  }
}

function read(operation: unknown): Operation {
  if (!isObject(operation)) throw badRequest('an operation of a JSON patch must be an object')
  const { op, path, from = '', value } = operation
  return { op: String(op), path: pointer(path), from: pointer(from), value }
}

/** RFC 6901. */
function pointer(path: unknown): readonly string[] {
  const isPointer = typeof path === 'string' && (path === '' || path.startsWith('/'))
  if (!isPointer) throw badRequest('the path of an operation must be a JSON pointer')
  const parts = path.split('/').slice(1)
  return parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function child(node: unknown, name: string): unknown {
  if (Array.isArray(node) && indexIn(node, name) < node.length) return node[Number(name)]
  if (isObject(node) && Object.hasOwn(node, name)) return node[name]
  throw failed([name], 'it does not exist')
}

function indexIn(list: readonly unknown[], name: string): number {
  const index = /^(0|[1-9]\d{0,8})$/.test(name) ? Number(name) : Infinity
  if (index > list.length) throw failed([name], 'it is no index of the list')
  return index
}

function failed(path: readonly string[], why: string): Refusal {
  return new Refusal(
    422,
    `the JSON patch cannot be applied at ${path.join('/').slice(0, 200)}: ${why}`,
  )
}
