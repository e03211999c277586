import { SortedNames } from './sorted-names.ts'

/** A part of a key between slashes, with everything below it. */
export interface TreeNode {
  readonly name: string
  /** The full path. */
  readonly path: string
  /** The key at this path. Only an internal key has another path than its name. */
  key: string
  readonly parent: TreeNode | undefined
  /** Whether the key at this path is claimed. */
  isKey: boolean
  /** The number of claimed keys here and below, and of claims that wait on them. */
  keys: number
  waiting: number
  children: Map<string, TreeNode> | undefined
  names: SortedNames | undefined
}

/** All keys as a tree of their parts. A change updates the counts on its own path. */
export class KeyTree {
  readonly root: TreeNode = nodeOf('', '', undefined)

  add(key: string, path = key): void {
    const node = this.#make(path)
    if (node.isKey) return
    node.isKey = true
    node.key = key
    for (let at: TreeNode | undefined = node; at; at = at.parent) at.keys++
  }

  delete(path: string): void {
    const node = this.find(path)
    if (!node?.isKey) return
    node.isKey = false
    for (let at: TreeNode | undefined = node; at; at = at.parent) at.keys--
    for (let at: TreeNode | undefined = node; at?.parent && at.keys === 0; at = at.parent) {
      at.parent.children!.delete(at.name)
      at.parent.names!.delete(at.name)
    }
  }

  /** Changes the number of waiters on a key. */
  wait(path: string, more: number): void {
    if (more === 0) return
    for (let at = this.find(path); at; at = at.parent) at.waiting += more
  }

  find(path: string): TreeNode | undefined {
    let node: TreeNode | undefined = this.root
    for (const name of path.split('/')) node = node?.children?.get(name)
    return node
  }

  #make(path: string): TreeNode {
    let node = this.root
    for (const name of path.split('/')) {
      node.children ??= new Map()
      node.names ??= new SortedNames()
      let child = node.children.get(name)
      if (child === undefined) {
        child = nodeOf(name, node === this.root ? name : `${node.path}/${name}`, node)
        node.children.set(name, child)
        node.names.add(name)
      }
      node = child
    }
    return node
  }
}

function nodeOf(name: string, path: string, parent: TreeNode | undefined): TreeNode {
  return {
    ...{ name, path, parent, key: path, isKey: false, keys: 0, waiting: 0 },
    children: undefined,
    names: undefined,
  }
}

/** One row of the tree. */
export interface TreeRow {
  readonly node: TreeNode
  readonly depth: number
  readonly isOpen: boolean
}
