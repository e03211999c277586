import { isDeepStrictEqual } from 'node:util'
import { badRequest, Refusal } from '../status.ts'
import { isObject } from './merge-patch.ts'

interface Operation {
  readonly op: string
  readonly path: readonly string[]
  readonly from: readonly string[]
  readonly value: unknown
}

type Change = (node: unknown, name: string) => unknown

const OPERATIONS_MAX = 1000

/** RFC 6902: a list of operations, of which all are done or none. */
export function jsonPatch(target: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch)) throw badRequest('a JSON patch must be a list of operations')
  if (patch.length > OPERATIONS_MAX) {
    throw badRequest(`the patch has ${patch.length} operations: at most ${OPERATIONS_MAX}`)
  }
  return patch.reduce<unknown>((before, operation) => apply(before, read(operation)), target)
}

function apply(target: unknown, { op, path, from, value }: Operation): unknown {
  switch (op) {
    case 'add':
      return at(target, path, adding(value))
    case 'remove':
      return at(target, path, removing)
    case 'replace':
      return at(at(target, path, removing), path, adding(value))
    case 'copy':
      return at(target, path, adding(find(target, from)))
    case 'move':
      return at(at(target, from, removing), path, adding(find(target, from)))
    case 'test':
      if (isDeepStrictEqual(find(target, path), value)) return target
      throw failed(path, 'the test failed')
    default:
      throw badRequest(`the operation ${JSON.stringify(op).slice(0, 64)} does not exist`)
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

/** A copy of `node` in which `change` has made the parent of the last part anew. */
function at(node: unknown, path: readonly string[], change: Change): unknown {
  const [name, ...rest] = path
  if (name === undefined) throw badRequest('an operation must not change the whole object')
  if (rest.length === 0) return change(node, name)
  return put(node, name, at(child(node, name), rest, change))
}

function find(node: unknown, path: readonly string[]): unknown {
  return path.reduce(child, node)
}

function child(node: unknown, name: string): unknown {
  if (Array.isArray(node) && indexIn(node, name) < node.length) return node[Number(name)]
  if (isObject(node) && Object.hasOwn(node, name)) return node[name]
  throw failed([name], 'it does not exist')
}

function adding(value: unknown): Change {
  return (node, name) => {
    if (!Array.isArray(node)) return put(node, name, value)
    return node.toSpliced(name === '-' ? node.length : indexIn(node, name), 0, value)
  }
}

const removing: Change = (node, name) => {
  child(node, name)
  if (Array.isArray(node)) return node.toSpliced(Number(name), 1)
  return Object.fromEntries(Object.entries(node as object).filter(([each]) => each !== name))
}

function put(node: unknown, name: string, value: unknown): unknown {
  if (Array.isArray(node)) return node.with(Number(name), value)
  if (!isObject(node)) throw failed([name], 'its parent is neither an object nor a list')
  return Object.fromEntries([...Object.entries(node), [name, value]])
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
