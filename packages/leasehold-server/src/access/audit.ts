/** One thing that somebody did who had the power to, or tried without. */
export interface AuditEntry {
  readonly action: string
  readonly by: string
  /** The address that it came from, if that is known. */
  readonly from?: string | undefined
  readonly target?: unknown
  readonly why?: string | undefined
  /** `done`, or the code of the refusal. */
  readonly outcome: string
}

/** Where it is written down. It must not throw. */
export interface Audit {
  record(entry: AuditEntry): void
}

export const noAudit: Audit = { record: () => {} }
