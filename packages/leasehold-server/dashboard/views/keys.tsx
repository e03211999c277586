import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { count, plural } from '../model/format.ts'
import { internalKey } from '../model/internal-keys.ts'
import type { Mirror } from '../model/mirror.ts'
import type { KeyTree, TreeNode, TreeRow } from '../model/trees/key-tree.ts'
import { headOf, VisibleRows } from '../model/trees/visible-rows.ts'
import { DrainBar, Empty, None, ShortName } from '../parts/badges.tsx'
import { Columns, DrainLegend } from '../parts/columns.tsx'
import { useLive } from '../parts/context.ts'
import { go, hrefTo, type Query, type Route, useQuery } from '../parts/route.ts'
import { Search } from '../parts/search.tsx'
import { WindowList } from '../parts/window-list.tsx'
import { KeyDetail } from './key-detail.tsx'

const ROW_HEIGHT = 34
/** A tree with at most this many keys is open at first. */
const OPEN_AT_FIRST = 200
const COLUMNS = [
  ['name-cell', 'Key'],
  ['holder', 'Holder'],
  ['token', 'Token'],
  ['drain', 'Time left'],
  ['waiting', 'Waiting'],
] as const
/** The shortest interval for repeating a search while keys change. */
const SEARCH_MS = 400

export function Keys({ route }: { readonly route: Route }) {
  const { mirror, now } = useLive()
  const query = useQuery('keys')
  const text = query.get('search')
  const isWaiting = query.get('waiting') !== ''
  const [isInternal, setInternal] = useInternal(route.at)
  const tree = isInternal ? mirror.internal : mirror.tree
  const isSearch = isWaiting || text.trim() !== ''
  const moment = Math.floor(now() / SEARCH_MS)
  const found = useMemo(
    () => (isSearch ? searchBoth(mirror, text, isWaiting) : undefined),
    [mirror, text, isWaiting, isSearch ? moment : 0],
  )
  return (
    <>
      <h1 class="unseen">Keys</h1>
      <div class={`split ${route.at === undefined ? '' : 'has-detail'}`}>
        <section class="panel list" aria-labelledby="keys-title">
          <h2 id="keys-title" class="title">
            {isInternal ? 'Internal keys' : 'Keys'}{' '}
            <span class="count">{count(tree.root.keys)}</span>
          </h2>
          <Filters {...{ query, text, isWaiting, isInternal, setInternal, found }} />
          {(isSearch || tree.root.keys > 0) && <Columns of="tree-line" names={COLUMNS} />}
          {found !== undefined ? (
            <Found
              keys={isInternal ? found.internal : found.own}
              {...{ isWaiting, chosen: route.at }}
            />
          ) : tree.root.keys === 0 ? (
            <NoKeys isInternal={isInternal} />
          ) : (
            <Tree key={String(isInternal)} {...{ tree, chosen: route.at }} />
          )}
          {tree.root.keys > 0 && <DrainLegend />}
        </section>
        <KeyDetail key={route.at} name={route.at} />
      </div>
    </>
  )
}

interface FiltersProps {
  readonly query: Query
  readonly text: string
  readonly isWaiting: boolean
  readonly isInternal: boolean
  setInternal(to: boolean): void
  readonly found: Matching | undefined
}

function Filters(props: FiltersProps) {
  const { query, text, isWaiting, isInternal, setInternal, found } = props
  const { mirror } = useLive()
  const turn = () => setInternal(!isInternal)
  return (
    <div class="filters">
      <Search what="keys and holders" text={text} change={(search) => query.set({ search })} />
      <button
        type="button"
        class="chip"
        aria-pressed={isWaiting}
        onClick={() => query.set({ waiting: isWaiting ? '' : 'only' })}
      >
        with waiters
      </button>
      <button
        type="button"
        class="chip"
        aria-pressed={isInternal}
        title="The keys that elections, pools, services, sessions and other recipes keep for themselves"
        onClick={turn}
      >
        internal keys {count(mirror.internal.root.keys)}
      </button>
      {found !== undefined && <Matches {...{ found, isInternal, turn }} />}
    </div>
  )
}

/** Survives a change of the view. */
let wasInternal = false

/** Whether the list shows internal keys: by choice, or because one is opened. */
function useInternal(chosen: string | undefined): readonly [boolean, (to: boolean) => void] {
  const of = (key: string) => internalKey(key) !== undefined
  const [isInternal, set] = useState(() => (chosen === undefined ? wasInternal : of(chosen)))
  useEffect(() => {
    if (chosen !== undefined) set(of(chosen))
  }, [chosen])
  wasInternal = isInternal
  return [isInternal, set]
}

function NoKeys({ isInternal }: { readonly isInternal: boolean }) {
  const { mirror } = useLive()
  if (isInternal) {
    return (
      <None title="No internal keys">
        <p>Elections, pools, services and sessions keep their state in such keys.</p>
      </None>
    )
  }
  const internal = mirror.internal.root.keys
  return (
    <None title="No key is claimed">
      <p>
        A key names something that can be held. The overview shows how to claim one.
        {internal > 0 && ` ${plural(internal, 'internal key')} of recipes not shown.`}
      </p>
    </None>
  )
}

interface Matching {
  readonly own: readonly string[]
  readonly internal: readonly string[]
}

/** The number of matches, and how to get to those that are not shown. */
function Matches(props: { readonly found: Matching; readonly isInternal: boolean; turn(): void }) {
  const { found, isInternal, turn } = props
  const [shown, hidden] = isInternal ? [found.internal, found.own] : [found.own, found.internal]
  return (
    <span class="quiet">
      {shown.length === 1 ? '1 match' : `${count(shown.length)} matches`}
      {hidden.length > 0 && (
        <button type="button" class="link" onClick={turn}>
          {count(hidden.length)} more in {isInternal ? 'other keys' : 'internal keys'}
        </button>
      )}
    </span>
  )
}

function searchBoth(mirror: Mirror, text: string, isWaiting: boolean): Matching {
  const all = search(mirror, text, isWaiting)
  const isOwn = (key: string) => internalKey(key) === undefined
  return { own: all.filter(isOwn), internal: all.filter((key) => !isOwn(key)) }
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
  readonly tree: KeyTree
  readonly chosen?: string | undefined
}

function Tree({ tree, chosen }: TreeProps) {
  const [, redraw] = useState(0)
  const kept = useRef<VisibleRows | undefined>(undefined)
  const isLive = useLive().status.is === 'live'
  // The open folders are chosen when all keys are loaded.
  const wasLive = useRef(false)
  const path = chosen === undefined ? undefined : (internalKey(chosen)?.path ?? chosen)
  const lines = useMemo(() => {
    const open = wasLive.current ? kept.current?.open : undefined
    const made = new VisibleRows(tree, open ?? openAtFirst(tree))
    if (isLive) wasLive.current = true
    if (path !== undefined) made.reveal(path)
    kept.current = made
    return made
  }, [tree, isLive])
  lines.layOut()
  const draw = () => redraw((times) => times + 1)
  const toggle = (node: TreeNode) => {
    lines.toggle(node, !lines.open.has(node.path))
    draw()
  }
  const choose = (index: number) => {
    const row = lines.at(index)
    if (row === undefined) return
    if (row.node.isKey) go(hrefTo('keys', row.node.key))
    if (row.node.children !== undefined && !row.node.isKey) toggle(row.node)
  }
  return (
    <WindowList
      label="Keys by prefix"
      role="tree"
      count={lines.length}
      rowHeight={ROW_HEIGHT}
      chosen={path === undefined ? undefined : lines.indexOf(path)}
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

function openAtFirst({ root }: KeyTree): Set<string> {
  const open = new Set<string>()
  const add = (node: TreeNode) => {
    for (const child of node.children?.values() ?? []) {
      if (child.children !== undefined) open.add(child.path)
      add(child)
    }
  }
  if (root.keys <= OPEN_AT_FIRST) add(root)
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
    return <KeyLine name={labelOf(node)} path={node.key} depth={depth} marker={marker} />
  }
  return (
    <div class="tree-line folder">
      <span class="name-cell">
        <Indent depth={depth} />
        {marker}
        <ShortName name={`${labelOf(node)}/`} full={node.path} />
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
  const purpose = internalKey(path)?.purpose
  const holder = row?.claims[0]
  const waiting = row === undefined ? 0 : row.count - row.held
  const lease = holder === undefined ? undefined : visibleLeases.show(holder.lease)
  return (
    <div class="tree-line">
      <span class="name-cell">
        <Indent depth={depth} />
        {marker || <span class="twist none" />}
        <ShortName name={name} full={path} />
        {purpose !== undefined && (
          <span class="quiet purpose" title={purpose}>
            {purpose}
          </span>
        )}
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
