import { SortedNames } from './sorted-names.ts'

/** A part of a key between slashes, and all that is below it. */
export interface TreeNode {
  readonly name: string
  /** The whole way to it: a key, if somebody claims that. */
  readonly path: string
  readonly parent: TreeNode | undefined
  /** Somebody claims the key of this path itself. */
  isKey: boolean
  /** How many keys are claimed here and below, and how many claims on them wait. */
  keys: number
  waiting: number
  children: Map<string, TreeNode> | undefined
  names: SortedNames | undefined
}

/** All keys as a tree of their parts, with sums that a change keeps up to date on its own path. */
export class KeyTree {
  readonly root: TreeNode = nodeOf('', '', undefined)

  add(key: string): void {
    const node = this.#make(key)
    if (node.isKey) return
    node.isKey = true
    for (let at: TreeNode | undefined = node; at; at = at.parent) at.keys++
  }

  delete(key: string): void {
    const node = this.find(key)
    if (!node?.isKey) return
    node.isKey = false
    for (let at: TreeNode | undefined = node; at; at = at.parent) at.keys--
    for (let at: TreeNode | undefined = node; at?.parent && at.keys === 0; at = at.parent) {
      at.parent.children!.delete(at.name)
      at.parent.names!.delete(at.name)
    }
  }

  /** Adds to those who wait on a key. */
  wait(key: string, more: number): void {
    if (more === 0) return
    for (let at = this.find(key); at; at = at.parent) at.waiting += more
  }

  find(path: string): TreeNode | undefined {
    let node: TreeNode | undefined = this.root
    for (const name of path.split('/')) node = node?.children?.get(name)
    return node
  }

  #make(key: string): TreeNode {
    let node = this.root
    for (const name of key.split('/')) {
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
    ...{ name, path, parent, isKey: false, keys: 0, waiting: 0 },
    children: undefined,
    names: undefined,
  }
}

/** One line of the tree as it is shown. */
export interface TreeRow {
  readonly node: TreeNode
  readonly depth: number
  readonly isOpen: boolean
}

/**
 * The lines of a tree of which some nodes are open. Nothing is laid out beforehand: a line is found by
 * its number, at the cost of the nodes that are open and not of those that are shown.
 */
export class TreeLines {
  readonly #tree: KeyTree
  /** The paths of the open nodes. */
  readonly open: Set<string>

  constructor(tree: KeyTree, open: ReadonlySet<string> = new Set()) {
    this.#tree = tree
    this.open = new Set(open)
  }

  get length(): number {
    return this.#linesBelow(this.#tree.root)
  }

  at(index: number): TreeRow | undefined {
    return index < 0 ? undefined : this.#find(this.#tree.root, index, 0)
  }

  /** The number of the line of this node, if all above it are open. */
  indexOf(path: string): number | undefined {
    const node = this.#tree.find(path)
    if (node?.parent === undefined) return undefined
    let index = node.parent.names!.indexOf(node.name)
    for (const sibling of this.#openChildren(node.parent)) {
      if (sibling.at < node.parent.names!.indexOf(node.name)) index += sibling.lines
    }
    if (node.parent === this.#tree.root) return index
    const above = this.open.has(node.parent.path) ? this.indexOf(node.parent.path) : undefined
    return above === undefined ? undefined : above + 1 + index
  }

  /** Opens all that is above a key, so that it can be seen. */
  reveal(path: string): void {
    for (let node = this.#tree.find(path)?.parent; node?.parent; node = node.parent) {
      this.open.add(node.path)
    }
  }

  #linesBelow(node: TreeNode): number {
    let lines = node.names?.size ?? 0
    for (const child of this.#openChildren(node)) lines += child.lines
    return lines
  }

  #find(parent: TreeNode, index: number, depth: number): TreeRow | undefined {
    let rest = index
    for (const { at, node, lines } of this.#openChildren(parent)) {
      if (rest < at) break
      if (rest === at) return { node, depth, isOpen: true }
      if (rest <= at + lines) return this.#find(node, rest - at - 1, depth + 1)
      rest -= lines
    }
    const name = parent.names?.list()[rest]
    const node = name === undefined ? undefined : parent.children?.get(name)
    return node && { node, depth, isOpen: false }
  }

  /** The open nodes directly below one, in their order, with the lines that are below each. */
  #openChildren(
    parent: TreeNode,
  ): { readonly at: number; readonly node: TreeNode; readonly lines: number }[] {
    if (parent.children === undefined || this.open.size === 0) return []
    const found = []
    for (const path of this.open) {
      const node = this.#tree.find(path)
      if (node?.parent !== parent || node.children === undefined) continue
      found.push({ at: parent.names!.indexOf(node.name), node, lines: this.#linesBelow(node) })
    }
    return found.sort((a, b) => a.at - b.at)
  }
}
