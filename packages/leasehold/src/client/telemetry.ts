import type { ErrorCode, Key, Token } from '../port/index.ts'
import type { ClientEvents, Emitter } from './emitter.ts'

/** How asking for keys ended. */
export type Acquisition =
  | { readonly outcome: 'held'; readonly lease: string; readonly token: Token }
  | { readonly outcome: 'busy' }
  | { readonly outcome: 'failed'; readonly code: ErrorCode; readonly error: unknown }

/** Something that measures a client: see `openTelemetry`. Without one nothing is measured. */
export interface Telemetry {
  /** Called once, when the client begins. */
  begin(events: Pick<Emitter<ClientEvents>, 'on'>, now: () => number): void
  /** Somebody asks for keys. What it answers with is called once, when that has ended. */
  acquiring(keys: readonly Key[]): (acquisition: Acquisition) => void
}
