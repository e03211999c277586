import type { KeyTree, TreeNode, TreeRow } from './key-tree.ts'

/** Whether a folder contains exactly one folder and nothing else. It shares that folder's row. */
function isLink({ isKey, parent, children }: TreeNode): boolean {
  if (isKey || parent === undefined || children?.size !== 1) return false
  for (const child of children.values()) if (child.children === undefined) return false
  return true
}

/** The last folder of such a chain. */
function endOf(node: TreeNode): TreeNode {
  let end = node
  while (isLink(end)) for (const child of end.children!.values()) end = child
  return end
}

export function headOf(node: TreeNode): TreeNode {
  let head = node
  while (head.parent !== undefined && isLink(head.parent)) head = head.parent
  return head
}

interface OpenNode {
  /** Its index among its siblings, and the number of rows below it. */
  readonly at: number
  readonly node: TreeNode
  readonly rows: number
}

/**
 * The rows of a tree with some open nodes; a chain of folders is one row. Only open nodes are
 * counted, so a row is found by its index in a tree of any size.
 */
export class VisibleRows {
  readonly #tree: KeyTree
  /** The paths of the open nodes. */
  readonly open: Set<string>
  #below = new Map<TreeNode, OpenNode[]>()
  length = 0

  constructor(tree: KeyTree, open: Iterable<string> = []) {
    this.#tree = tree
    this.open = new Set(open)
    this.layOut()
  }

  /** Counts the rows again. Called before each drawing, because nodes come and go. */
  layOut(): void {
    const found = new Map<TreeNode, TreeNode[]>()
    for (const path of this.open) {
      const node = this.#tree.find(path)
      if (node?.children === undefined || isLink(node)) continue
      const above = headOf(node).parent!
      const beside = found.get(above)
      if (beside === undefined) found.set(above, [node])
      else beside.push(node)
    }
    this.#below = new Map()
    this.length = this.#count(this.#tree.root, found)
  }

  #count(parent: TreeNode, found: ReadonlyMap<TreeNode, TreeNode[]>): number {
    const inside = (found.get(parent) ?? []).map((node) => {
      const at = parent.names!.indexOf(headOf(node).name)
      return { at, node, rows: this.#count(node, found) }
    })
    inside.sort((a, b) => a.at - b.at)
    this.#below.set(parent, inside)
    return inside.reduce((sum, { rows }) => sum + rows, parent.names?.size ?? 0)
  }

  at(index: number): TreeRow | undefined {
    return index < 0 ? undefined : this.#find(this.#tree.root, index, 0)
  }

  #find(parent: TreeNode, index: number, depth: number): TreeRow | undefined {
    let rest = index
    for (const { at, node, rows } of this.#below.get(parent) ?? []) {
      if (rest < at) break
      if (rest === at) return { node, depth, isOpen: true }
      if (rest <= at + rows) return this.#find(node, rest - at - 1, depth + 1)
      rest -= rows
    }
    const child = parent.children?.get(parent.names?.list()[rest] ?? '')
    return child && { node: endOf(child), depth, isOpen: false }
  }

  /** The index of a node's row, if all nodes above it are open. */
  indexOf(path: string): number | undefined {
    const node = this.#tree.find(path)
    const head = node && headOf(node)
    if (node?.parent === undefined || head?.parent === undefined) return undefined
    const place = head.parent.names!.indexOf(head.name)
    let index = place
    for (const { at, rows } of this.#below.get(head.parent) ?? []) if (at < place) index += rows
    if (head.parent === this.#tree.root) return index
    const isSeen = this.open.has(head.parent.path)
    const above = isSeen ? this.indexOf(head.parent.path) : undefined
    return above === undefined ? undefined : above + 1 + index
  }

  /** The path of the row above a node in the tree. */
  above(node: TreeNode): string | undefined {
    const { parent } = headOf(node)
    return parent === this.#tree.root ? undefined : parent?.path
  }

  /** Opens the whole chain, so that it stays open if a key appears within it. */
  toggle(node: TreeNode, to: boolean): void {
    if (to) this.#open(node, headOf(node).parent)
    else this.open.delete(node.path)
    this.layOut()
  }

  /** Opens everything above a key, so that its row is visible. */
  reveal(path: string): void {
    this.#open(this.#tree.find(path)?.parent, this.#tree.root)
    this.layOut()
  }

  #open(from: TreeNode | undefined, end: TreeNode | undefined): void {
    for (let at = from; at && at !== end; at = at.parent) this.open.add(at.path)
  }
}
