/**
 * Calls a listener of the user's. If it throws, the others must be called all the same, and a
 * heartbeat must continue; so the error becomes a warning of the process instead of disappearing.
 */
export function callObserver<Event>(observer: (event: Event) => void, event: Event): void {
  try {
    observer(event)
  } catch (error) {
    process.emitWarning(error instanceof Error ? error : new Error(String(error)))
  }
}
