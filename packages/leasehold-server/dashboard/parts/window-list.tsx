import type { ComponentChildren, RefObject } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

export interface WindowListProps {
  readonly label: string
  readonly count: number
  /** In pixels; the same for all rows. */
  readonly rowHeight: number
  /** Renders the row at an index. */
  row(index: number): ComponentChildren
  /** The index of the chosen row. */
  readonly chosen?: number | undefined
  choose?(index: number): void
  /** Handles other keys. Returns the row to move to, or whether the key was handled. */
  onKey?(event: KeyboardEvent, index: number): number | boolean
  /**
   * The item of a row, and the current row of an item. With these, the keyboard focus stays on its
   * item while rows above it come and go.
   */
  itemAt?(index: number): unknown
  placeOf?(item: never): number | undefined
  /** Nothing is chosen in a `list`: its rows contain links and buttons. */
  readonly role?: 'listbox' | 'tree' | 'list' | undefined
  /** The level of a row in a tree, and whether it is open; `undefined` for a leaf. */
  levelOf?(index: number): { readonly level: number; readonly isOpen: boolean | undefined }
  readonly class?: string
}

/** Extra rows above and below, so that a quick scroll shows no empty rows. */
const SPARE = 6

/**
 * A list of any length that renders only the visible rows. It is one tab stop: arrows, page up and
 * down, home and end move in it, and return or space chooses.
 */
export function WindowList(props: WindowListProps) {
  const { label, count, rowHeight, role = 'listbox', chosen, choose } = props
  const box = useRef<HTMLDivElement>(null)
  const [view, setView] = useView(box)
  const { active, setActive } = useActive(props)
  const id = useRef(`list-${Math.random().toString(36).slice(2)}`).current
  useEffect(() => {
    if (chosen !== undefined) reveal(box.current!, chosen, rowHeight)
  }, [chosen === undefined ? undefined : (props.itemAt?.(chosen) ?? chosen)])
  const first = Math.max(0, Math.floor(view.top / rowHeight) - SPARE)
  const last = Math.min(count, Math.ceil((view.top + view.height) / rowHeight) + SPARE)
  const at = active === undefined ? (chosen ?? first) : Math.min(active, count - 1)
  useEffect(() => {
    // Keep the active row in sight when rows above it change.
    const { activeElement } = document
    if (active !== undefined && activeElement === box.current) reveal(box.current!, at, rowHeight)
  }, [at])
  const move = (to: number) => {
    const next = Math.min(Math.max(to, 0), count - 1)
    setActive(next)
    reveal(box.current!, next, rowHeight)
  }
  const page = Math.max(1, Math.floor(view.height / rowHeight) - 1)
  // Rows that scroll out of sight are reused.
  const slots = Math.ceil(view.height / rowHeight) + 2 * SPARE + 2
  const rows = []
  for (let index = first; index < last; index++) {
    const pick = () => {
      setActive(index)
      choose?.(index)
    }
    rows.push(<Row key={index % slots} {...{ props, index, id, pick, isActive: index === at }} />)
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it has one of three roles.
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: each of them has a label.
    <div
      class={`window-list ${props.class ?? ''}`}
      ref={box}
      role={role}
      aria-label={label}
      tabIndex={0}
      aria-activedescendant={
        role !== 'list' && count > 0 && at >= first && at < last ? `${id}-${at}` : undefined
      }
      onScroll={({ currentTarget: { scrollTop, clientHeight } }) =>
        setView({ top: scrollTop, height: clientHeight })
      }
      onKeyDown={(event) => onKeyDown(event, props, { at, page, move })}
      {...useHeldStill(box, props)}
      onFocus={() => {
        if (active === undefined) setActive(chosen ?? first)
      }}
    >
      <div class="window-list-all" role="presentation" style={{ height: count * rowHeight }}>
        {rows}
      </div>
    </div>
  )
}

interface Keyboard {
  readonly at: number
  /** The number of rows in a page. */
  readonly page: number
  move(to: number): void
}

function onKeyDown(event: KeyboardEvent, props: WindowListProps, { at, page, move }: Keyboard) {
  const { count, choose, onKey } = props
  // Links and buttons in a row handle their own keys.
  if (event.target !== event.currentTarget) return
  const own = () => onKey?.(event, at) ?? false
  const isChoice = /^(Enter| )$/.test(event.key) && choose !== undefined && count > 0
  const moved = movedTo(event.key, at, page, count) ?? (isChoice ? true : own())
  if (typeof moved === 'number') move(moved)
  else if (isChoice) choose(at)
  else if (!moved) return
  event.preventDefault()
}

const NARROW = '(max-width: 720px)'

/** Whether the page is as narrow as a phone; rows are higher then. */
export function useNarrow(): boolean {
  const [isNarrow, set] = useState(() => matchMedia(NARROW).matches)
  useEffect(() => {
    const media = matchMedia(NARROW)
    const listener = () => set(media.matches)
    media.addEventListener('change', listener)
    return () => media.removeEventListener('change', listener)
  }, [])
  return isNarrow
}

/** The active row of the keyboard. It follows its item if the items are known. */
function useActive({ itemAt, placeOf, count }: WindowListProps) {
  const [active, set] = useState<{ index: number; item: unknown } | undefined>(undefined)
  const place = active?.item === undefined ? undefined : placeOf?.(active.item as never)
  const index = place ?? active?.index
  // If the item has gone, follow the one in its place.
  if (active !== undefined && index !== undefined && count > 0) {
    const last = Math.min(index, count - 1)
    active.index = last
    if (place === undefined) active.item = itemAt?.(last)
  }
  return {
    active: index,
    setActive: (to: number) => set({ index: to, item: itemAt?.(to) }),
  }
}

/** A pointer that rests this long is ignored, so that a wall screen keeps scrolling. */
const POINTER_MS = 10_000

interface Pointer {
  readonly height: number
  /** Whether the list was at its top and the user has not scrolled since. */
  atTop: boolean
  readonly rest: ReturnType<typeof setTimeout>
}

/**
 * Scrolls so that the row under the pointer stays there while rows above it come and go: a click must
 * hit the intended row. A list that was at its top returns there afterwards.
 */
function useHeldStill(box: RefObject<HTMLDivElement>, props: WindowListProps) {
  const { rowHeight, itemAt, placeOf, count } = props
  const pointer = useRef<Pointer | undefined>(undefined)
  const held = useRef<{ index: number; item: unknown } | undefined>(undefined)
  const hold = ({ height }: Pointer) => {
    const { top } = box.current!.getBoundingClientRect()
    const index = Math.floor((height - top + box.current!.scrollTop) / rowHeight)
    held.current = index < 0 || index >= count ? undefined : { index, item: itemAt?.(index) }
  }
  useLayoutEffect(() => {
    if (pointer.current === undefined) return
    const { index, item } = held.current ?? {}
    const place = item === undefined ? undefined : placeOf?.(item as never)
    if (place !== undefined) box.current!.scrollTop += (place - index!) * rowHeight
    hold(pointer.current)
  })
  const leave = () => {
    if (pointer.current?.atTop) box.current!.scrollTop = 0
    clearTimeout(pointer.current?.rest)
    pointer.current = undefined
  }
  useEffect(() => leave, [])
  const point = ({ clientY }: PointerEvent) => {
    clearTimeout(pointer.current?.rest)
    const atTop = pointer.current?.atTop ?? box.current!.scrollTop === 0
    const next = { height: clientY, atTop, rest: setTimeout(leave, POINTER_MS) }
    pointer.current = next
    hold(next)
  }
  const scrolled = () => {
    if (pointer.current !== undefined) pointer.current.atTop = false
  }
  return { onPointerMove: point, onPointerLeave: leave, onWheel: scrolled, onTouchMove: scrolled }
}

/** The visible part of a box: its scroll position and height. */
function useView(box: RefObject<HTMLDivElement>) {
  const state = useState({ top: 0, height: 600 })
  const [, setView] = state
  useLayoutEffect(() => {
    const element = box.current!
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight })
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    measure()
    return () => observer.disconnect()
  }, [])
  return state
}

interface RowProps {
  readonly props: WindowListProps
  readonly index: number
  readonly id: string
  readonly isActive: boolean
  pick(): void
}

function Row({ props, index, id, isActive, pick }: RowProps) {
  const { rowHeight, role, chosen, levelOf, count } = props
  const level = levelOf?.(index)
  const isChosen = index === chosen
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the list around it has the keys.
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: it has one of three roles.
    // biome-ignore lint/a11y/noStaticElementInteractions: it has one of three roles.
    <div
      id={`${id}-${index}`}
      role={role === 'tree' ? 'treeitem' : role === 'list' ? 'listitem' : 'option'}
      aria-selected={role === 'list' ? undefined : isChosen}
      aria-setsize={count}
      aria-posinset={index + 1}
      aria-level={level?.level}
      aria-expanded={level?.isOpen}
      class={`row${isChosen ? ' chosen' : ''}${isActive && role !== 'list' ? ' active' : ''}`}
      style={{ height: rowHeight, transform: `translateY(${index * rowHeight}px)` }}
      onClick={pick}
    >
      {props.row(index)}
    </div>
  )
}

function movedTo(key: string, at: number, page: number, count: number): number | undefined {
  if (count === 0) return undefined
  if (key === 'ArrowDown') return at + 1
  if (key === 'ArrowUp') return at - 1
  if (key === 'PageDown') return at + page
  if (key === 'PageUp') return at - page
  if (key === 'Home') return 0
  return key === 'End' ? count - 1 : undefined
}

function reveal(box: HTMLElement, index: number, rowHeight: number): void {
  const top = index * rowHeight
  if (top < box.scrollTop) box.scrollTop = top
  else if (top + rowHeight > box.scrollTop + box.clientHeight) {
    box.scrollTop = top + rowHeight - box.clientHeight
  }
}
