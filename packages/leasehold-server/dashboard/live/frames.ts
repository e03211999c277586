import { useEffect, useReducer } from 'preact/hooks'

/** The interval for drawing what changes with time, such as the bars. */
const TICK_MS = 250

const listeners = new Set<() => void>()
let isScheduled = false

/** Redraws everything once, in the next frame. */
export function changed(): void {
  if (isScheduled) return
  isScheduled = true
  // A hidden tab has no frames, so it does no work.
  requestAnimationFrame(() => {
    isScheduled = false
    for (const listener of listeners) listener()
  })
}

export function startTicking(): void {
  setInterval(changed, TICK_MS)
}

/** Redraws a component in each frame with a change. */
export function useFrames(): void {
  const [, draw] = useReducer((count: number) => count + 1, 0)
  useEffect(() => {
    const listener = () => draw(undefined)
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }, [])
}
