/** A forced change, or a refused attempt. */
export interface AuditEntry {
  readonly action: string
  readonly by: string
  /** The remote address, if known. */
  readonly from?: string | undefined
  readonly target?: unknown
  readonly why?: string | undefined
  /** `done`, or the error code. */
  readonly outcome: string
}

/** The audit log. `record` must not throw. */
export interface Audit {
  record(entry: AuditEntry): void
}

export const noAudit: Audit = { record: () => {} }
