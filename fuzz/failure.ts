/** What counts as a failure. */
export type FailureKind =
  | 'crash'
  | 'hang'
  | 'server-error'
  | 'stack-trace'
  | 'pause'
  | 'lost-lock'
  | 'wrong-error'
  | 'silent-loss'
  | 'memory'

export interface Failure {
  readonly kind: FailureKind
  readonly detail: string
}

/** The same for two failures that have the same cause, as far as their words tell. */
export function signatureOf({ kind, detail }: Failure): string {
  if (kind === 'pause' || kind === 'hang' || kind === 'memory') return kind
  return `${kind} ${detail
    .replaceAll(/\d+/g, '0')
    .replaceAll(/"[^"]*"/g, '""')
    .slice(0, 160)}`
}

/** A reply must not tell how the program is built. */
export function showsStack(text: string): boolean {
  return /\n\s+at |\\n\s+at [\w.<]|node:internal|\/node_modules\/|\/dist\/\w/.test(text)
}
