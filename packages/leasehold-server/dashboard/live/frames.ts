import { useEffect, useReducer } from 'preact/hooks'

/** What is shown as time passes, such as a bar that drains, is drawn so often. */
const TICK_MS = 250

const listeners = new Set<() => void>()
let isScheduled = false

/** Something has changed: whatever shows it is drawn anew, once, in the next frame. */
export function changed(): void {
  if (isScheduled) return
  isScheduled = true
  // In a tab that nobody sees there are no frames, and so no work.
  requestAnimationFrame(() => {
    isScheduled = false
    for (const listener of listeners) listener()
  })
}

export function startTicking(): void {
  setInterval(changed, TICK_MS)
}

/** Draws a component anew in each frame in which something has changed. */
export function useFrames(): void {
  const [, draw] = useReducer((count: number) => count + 1, 0)
  useEffect(() => {
    const listener = () => draw(undefined)
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }, [])
}
