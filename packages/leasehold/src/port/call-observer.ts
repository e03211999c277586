import { warn } from './runtime.ts'

/**
 * Calls a listener of the user's. If it throws, the others must still be called, and a
 * heartbeat must continue; so the error becomes a warning of the process instead of disappearing.
 */
export function callObserver<Event>(observer: (event: Event) => void, event: Event): void {
  try {
    observer(event)
  } catch (error) {
    warn(error instanceof Error ? error : new Error(String(error)))
  }
}
