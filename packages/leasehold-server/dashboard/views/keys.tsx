import { useMemo, useRef, useState } from 'preact/hooks'
import { count, several } from '../model/format.ts'
import { TreeLines, type TreeNode, type TreeRow } from '../model/key-tree.ts'
import type { Mirror } from '../model/mirror.ts'
import { useLive } from '../parts/context.ts'
import { go, hrefTo, type Route } from '../parts/route.ts'
import { DrainBar, Empty } from '../parts/small.tsx'
import { WindowList } from '../parts/window-list.tsx'
import { KeyDetail } from './key-detail.tsx'

const ROW_HEIGHT = 34
/** With few keys all of the tree is open at first. */
const OPEN_AT_FIRST = 200
/** While keys come and go a search is repeated at most so often. */
const SEARCH_MS = 400

export function Keys({ route }: { readonly route: Route }) {
  const live = useLive()
  const { mirror, now } = live
  const [text, setText] = useState('')
  const moment = Math.floor(now() / SEARCH_MS)
  const found = useMemo(
    () => (text.trim() === '' ? undefined : search(mirror, text)),
    [mirror, text, text.trim() === '' ? 0 : moment],
  )
  return (
    <>
      <h1 class="unseen">Keys</h1>
      <div class={`split ${route.at === undefined ? '' : 'has-detail'}`}>
        <section class="panel list" aria-labelledby="keys-title">
          <h2 id="keys-title" class="title">
            Keys <span class="count">{count(mirror.keys.size)}</span>
          </h2>
          <div class="filters">
            <input
              type="search"
              class="search"
              data-search
              aria-label="Search keys and holders"
              placeholder="Search keys and holders  ( / )"
              value={text}
              onInput={(event) => setText(event.currentTarget.value)}
            />
            {found !== undefined && (
              <span class="quiet">
                {several(found.length, 'match').replace('matchs', 'matches')}
              </span>
            )}
          </div>
          {mirror.keys.size === 0 ? (
            <Empty title="No key is claimed">
              <p>
                A key is a name for anything that can be held. The overview shows how to claim one.
              </p>
            </Empty>
          ) : found !== undefined ? (
            <Found keys={found} chosen={route.at} />
          ) : (
            <Tree mirror={mirror} chosen={route.at} />
          )}
        </section>
        <KeyDetail key={route.at} name={route.at} />
      </div>
    </>
  )
}

/** All keys with this in their names or in those of their holders, by name. */
export function search(mirror: Mirror, text: string): string[] {
  const wanted = text.trim().toLowerCase()
  const found: string[] = []
  for (const { key, claims } of mirror.keys.values()) {
    const isFound =
      key.toLowerCase().includes(wanted) ||
      claims.some(({ holder }) => holder.toLowerCase().includes(wanted))
    if (isFound) found.push(key)
  }
  return found.sort()
}

function Found({
  keys,
  chosen,
}: {
  readonly keys: readonly string[]
  readonly chosen?: string | undefined
}) {
  const at = chosen === undefined ? -1 : keys.indexOf(chosen)
  if (keys.length === 0) return <Empty title="No key or holder is called so" />
  return (
    <WindowList
      label="Keys that were found"
      count={keys.length}
      rowHeight={ROW_HEIGHT}
      chosen={at < 0 ? undefined : at}
      row={(index) => <KeyLine name={keys[index]!} path={keys[index]!} depth={0} />}
      choose={(index) => go(hrefTo('keys', keys[index]!))}
    />
  )
}

function Tree({
  mirror,
  chosen,
}: {
  readonly mirror: Mirror
  readonly chosen?: string | undefined
}) {
  const [, redraw] = useState(0)
  const kept = useRef<TreeLines | undefined>(undefined)
  const lines = useMemo(() => {
    const made = new TreeLines(mirror.tree, kept.current?.open ?? openAtFirst(mirror))
    if (chosen !== undefined) made.reveal(chosen)
    kept.current = made
    return made
  }, [mirror])
  const toggle = ({ path }: TreeNode, to = !lines.open.has(path)) => {
    if (to) lines.open.add(path)
    else lines.open.delete(path)
    redraw((times) => times + 1)
  }
  const choose = (index: number) => {
    const row = lines.at(index)
    if (row === undefined) return
    if (row.node.isKey) go(hrefTo('keys', row.node.path))
    if (row.node.children !== undefined && !row.node.isKey) toggle(row.node)
  }
  const onKey = ({ key }: KeyboardEvent, index: number): boolean => {
    const node = lines.at(index)?.node
    if (node?.children === undefined) return false
    if (key === 'ArrowRight') toggle(node, true)
    else if (key === 'ArrowLeft') toggle(node, false)
    else return false
    return true
  }
  return (
    <WindowList
      label="Keys by prefix"
      role="tree"
      count={lines.length}
      rowHeight={ROW_HEIGHT}
      chosen={chosen === undefined ? undefined : lines.indexOf(chosen)}
      levelOf={(index) => {
        const row = lines.at(index)
        const isOpen = row?.node.children === undefined ? undefined : row.isOpen
        return { level: (row?.depth ?? 0) + 1, isOpen }
      }}
      row={(index) => <TreeLine row={lines.at(index)} toggle={toggle} />}
      choose={choose}
      onKey={onKey}
    />
  )
}

function openAtFirst(mirror: Mirror): Set<string> {
  const open = new Set<string>()
  if (mirror.keys.size > OPEN_AT_FIRST) return open
  const walk = (node: TreeNode) => {
    for (const child of node.children?.values() ?? []) {
      if (child.children === undefined) continue
      open.add(child.path)
      walk(child)
    }
  }
  walk(mirror.tree.root)
  return open
}

interface TreeLineProps {
  readonly row: TreeRow | undefined
  toggle(node: TreeNode): void
}

function TreeLine({ row, toggle }: TreeLineProps) {
  if (row === undefined) return null
  const { node, depth, isOpen } = row
  const isFolder = node.children !== undefined
  const marker = isFolder ? (
    <span
      class={`twist ${isOpen ? 'open' : ''}`}
      aria-hidden="true"
      onClick={(event) => {
        event.stopPropagation()
        toggle(node)
      }}
    />
  ) : (
    <span class="twist none" />
  )
  if (node.isKey) {
    return <KeyLine name={node.name} path={node.path} depth={depth} marker={marker} />
  }
  return (
    <div class="tree-line folder">
      <span class="name-cell">
        <span class="indent" style={{ width: depth * 16 }} />
        {marker}
        <span class="key">{node.name}/</span>
      </span>
      <span class="quiet counts">
        {several(node.keys, 'key')}
        {node.waiting > 0 && `, ${count(node.waiting)} waiting`}
      </span>
    </div>
  )
}

interface KeyLineProps {
  readonly name: string
  readonly path: string
  readonly depth: number
  readonly marker?: preact.ComponentChildren
}

function KeyLine({ name, path, depth, marker }: KeyLineProps) {
  const { mirror, book, now } = useLive()
  const row = mirror.keys.get(path)
  const holder = row?.claims[0]
  const waiting = row === undefined ? 0 : row.count - row.held
  const lease = holder === undefined ? undefined : book.see(holder.lease)
  return (
    <div class="tree-line">
      <span class="name-cell">
        <span class="indent" style={{ width: depth * 16 }} />
        {marker ?? <span class="twist none" />}
        <span class="key">{name}</span>
      </span>
      <span class="holder">
        {holder?.holder ?? 'free'}
        {(row?.held ?? 0) > 1 && ` +${row!.held - 1}`}
      </span>
      <span class="token">{holder === undefined ? '' : `#${holder.token}`}</span>
      <DrainBar lease={lease} now={now()} />
      <span class={`waiting ${waiting > 0 ? '' : 'none'}`}>
        {waiting > 0 && (
          <>
            +{count(waiting)} <span class="word">waiting</span>
          </>
        )}
      </span>
    </div>
  )
}
