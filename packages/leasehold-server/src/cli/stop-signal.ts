import { constants } from 'node:os'
import { Exit, RUN_EXIT } from './exit-codes.ts'

/** The signals that stop a command. Those that run another command pass them on. */
export const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/** An abort signal that fires when this process is asked to stop, until `end` is called. */
export function stopSignal(): { readonly signal: AbortSignal; end(): void } {
  const controller = new AbortController()
  const stop = (name: NodeJS.Signals) => {
    controller.abort(new Exit(RUN_EXIT.signal + constants.signals[name]))
  }
  for (const name of STOP_SIGNALS) process.on(name, stop)
  return {
    signal: controller.signal,
    end: () => {
      for (const name of STOP_SIGNALS) process.off(name, stop)
    },
  }
}
