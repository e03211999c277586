import type { ErrorCode, Key, Token } from '../../port/index.ts'
import type { ClientEvents, Emitter } from './emitter.ts'

/** How an acquisition ended. */
export type Acquisition =
  | { readonly outcome: 'held'; readonly lease: string; readonly token: Token }
  | { readonly outcome: 'busy' }
  | { readonly outcome: 'failed'; readonly code: ErrorCode; readonly error: unknown }

/** Measures a client: see `openTelemetry`. Without one nothing is measured. */
export interface Telemetry {
  /** Called once, when the client is created. */
  begin(events: Pick<Emitter<ClientEvents>, 'on'>, now: () => number): void
  /** Somebody asks for keys. The function it returns is called once, when that has ended. */
  acquiring(keys: readonly Key[]): (acquisition: Acquisition) => void
}
