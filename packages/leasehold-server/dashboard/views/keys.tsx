import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { count, plural } from '../model/format.ts'
import type { TreeNode, TreeRow } from '../model/key-tree.ts'
import type { Mirror } from '../model/mirror.ts'
import { headOf, VisibleRows } from '../model/visible-rows.ts'
import { DrainBar, Empty, None } from '../parts/badges.tsx'
import { useLive } from '../parts/context.ts'
import { go, hrefTo, type Route } from '../parts/route.ts'
import { WindowList } from '../parts/window-list.tsx'
import { KeyDetail } from './key-detail.tsx'

const ROW_HEIGHT = 34
/** A tree with at most this many keys is open at first. */
const OPEN_AT_FIRST = 200
/** The shortest interval for repeating a search while keys change. */
const SEARCH_MS = 400

export function Keys({ route }: { readonly route: Route }) {
  const { mirror, now } = useLive()
  const [text, setText] = useState('')
  const [isWaiting, setWaiting] = useState(route.query.has('waiting'))
  const isSearch = isWaiting || text.trim() !== ''
  const moment = Math.floor(now() / SEARCH_MS)
  const found = useMemo(
    () => (isSearch ? search(mirror, text, isWaiting) : undefined),
    [mirror, text, isWaiting, isSearch ? moment : 0],
  )
  useEffect(() => {
    if (route.query.has('waiting')) setWaiting(true)
  }, [route])
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
            <button
              type="button"
              class="chip"
              aria-pressed={isWaiting}
              onClick={() => setWaiting(!isWaiting)}
            >
              with waiters
            </button>
            {found !== undefined && (
              <span class="quiet">
                {found.length === 1 ? '1 match' : `${count(found.length)} matches`}
              </span>
            )}
          </div>
          {mirror.keys.size === 0 ? (
            <None title="No key is claimed">
              <p>A key names something that can be held. The overview shows how to claim one.</p>
            </None>
          ) : found !== undefined ? (
            <Found keys={found} isWaiting={isWaiting} chosen={route.at} />
          ) : (
            <Tree mirror={mirror} chosen={route.at} />
          )}
        </section>
        <KeyDetail key={route.at} name={route.at} />
      </div>
    </>
  )
}

/** All keys whose name or holder contains this, by name. */
export function search(mirror: Mirror, text: string, isWaiting = false): string[] {
  const wanted = text.trim().toLowerCase()
  const found: string[] = []
  for (const key of isWaiting ? mirror.contended : mirror.keys.keys()) {
    const claims = mirror.keys.get(key)?.claims ?? []
    const isFound =
      key.toLowerCase().includes(wanted) ||
      claims.some(({ holder }) => holder.toLowerCase().includes(wanted))
    if (isFound) found.push(key)
  }
  return found.sort()
}

interface FoundProps {
  readonly keys: readonly string[]
  readonly isWaiting: boolean
  readonly chosen?: string | undefined
}

function Found({ keys, isWaiting, chosen }: FoundProps) {
  const at = chosen === undefined ? -1 : keys.indexOf(chosen)
  if (keys.length === 0)
    return <Empty title={isWaiting ? 'No matching key has waiters' : 'No matching key or holder'} />
  return (
    <WindowList
      label="Found keys"
      count={keys.length}
      rowHeight={ROW_HEIGHT}
      chosen={at < 0 ? undefined : at}
      row={(index) => <KeyLine name={keys[index]!} path={keys[index]!} depth={0} />}
      choose={(index) => go(hrefTo('keys', keys[index]!))}
      itemAt={(index) => keys[index]}
      placeOf={(key: string) => (keys.includes(key) ? keys.indexOf(key) : undefined)}
    />
  )
}

/** Arrow keys open and close folders, and move into and out of them. */
function movedIn(lines: VisibleRows, key: string, index: number): number | boolean {
  const row = lines.at(index)
  if (row === undefined) return false
  const { node, isOpen } = row
  const isFolder = node.children !== undefined
  if (key === 'ArrowRight' && isFolder && isOpen) return index + 1
  if (key === 'ArrowLeft' && !isOpen) {
    const above = lines.above(node)
    return above === undefined ? false : (lines.indexOf(above) ?? false)
  }
  if (!isFolder || !/^Arrow(Left|Right)$/.test(key)) return false
  lines.toggle(node, key === 'ArrowRight')
  return true
}

interface TreeProps {
  readonly mirror: Mirror
  readonly chosen?: string | undefined
}

function Tree({ mirror, chosen }: TreeProps) {
  const [, redraw] = useState(0)
  const kept = useRef<VisibleRows | undefined>(undefined)
  const isLive = useLive().status.is === 'live'
  // The open folders are chosen when all keys are loaded.
  const wasLive = useRef(false)
  const lines = useMemo(() => {
    const open = wasLive.current ? kept.current?.open : undefined
    const made = new VisibleRows(mirror.tree, open ?? openAtFirst(mirror))
    if (isLive) wasLive.current = true
    if (chosen !== undefined) made.reveal(chosen)
    kept.current = made
    return made
  }, [mirror, isLive])
  lines.layOut()
  const draw = () => redraw((times) => times + 1)
  const toggle = (node: TreeNode) => {
    lines.toggle(node, !lines.open.has(node.path))
    draw()
  }
  const choose = (index: number) => {
    const row = lines.at(index)
    if (row === undefined) return
    if (row.node.isKey) go(hrefTo('keys', row.node.path))
    if (row.node.children !== undefined && !row.node.isKey) toggle(row.node)
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
      itemAt={(index) => lines.at(index)?.node.path}
      placeOf={(path: string) => lines.indexOf(path)}
      onKey={({ key }, index) => {
        const moved = movedIn(lines, key, index)
        if (moved === true) draw()
        return moved
      }}
    />
  )
}

function openAtFirst(mirror: Mirror): Set<string> {
  const open = new Set<string>()
  if (mirror.keys.size > OPEN_AT_FIRST) return open
  for (const key of mirror.keys.keys()) {
    const parts = key.split('/')
    for (let end = 1; end < parts.length; end++) open.add(parts.slice(0, end).join('/'))
  }
  return open
}

/** The name of a node, including the chain of folders that it ends. */
function labelOf(node: TreeNode): string {
  const above = headOf(node).parent?.path ?? ''
  // A trailing slash has no name after it.
  return above === '' ? node.path : node.path.slice(above.length + 1) || node.path
}

/** Limited, so that there is room for the name at any depth. */
function Indent({ depth }: { readonly depth: number }) {
  return <span class="indent" style={{ width: `min(${depth * 16}px, 8rem, 20vw)` }} />
}

interface TreeLineProps {
  readonly row: TreeRow | undefined
  toggle(node: TreeNode): void
}

function TreeLine({ row, toggle }: TreeLineProps) {
  if (row === undefined) return null
  const { node, depth, isOpen } = row
  const turn = (event: MouseEvent) => {
    event.stopPropagation()
    toggle(node)
  }
  const marker = node.children && (
    <span class={`twist ${isOpen ? 'open' : ''}`} aria-hidden="true" onClick={turn} />
  )
  if (node.isKey) {
    return <KeyLine name={labelOf(node)} path={node.path} depth={depth} marker={marker} />
  }
  return (
    <div class="tree-line folder">
      <span class="name-cell">
        <Indent depth={depth} />
        {marker}
        <span class="key" title={node.path}>
          <bdi>{labelOf(node)}/</bdi>
        </span>
      </span>
      <span class="quiet counts">
        {plural(node.keys, 'key')}
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
  const { mirror, visibleLeases, now } = useLive()
  const row = mirror.keys.get(path)
  const holder = row?.claims[0]
  const waiting = row === undefined ? 0 : row.count - row.held
  const lease = holder === undefined ? undefined : visibleLeases.show(holder.lease)
  return (
    <div class="tree-line">
      <span class="name-cell">
        <Indent depth={depth} />
        {marker || <span class="twist none" />}
        <span class="key" title={path}>
          <bdi>{name}</bdi>
        </span>
      </span>
      <span class="holder">
        {holder?.holder ?? 'free'}
        {(row?.held ?? 0) > 1 && ` +${row!.held - 1}`}
      </span>
      <span class="token" title={holder && `fencing token ${holder.token}`}>
        {holder && `#${holder.token}`}
      </span>
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
