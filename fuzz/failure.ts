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

/** Equal for two failures with the same cause, as far as their messages show. */
export function signatureOf({ kind, detail }: Failure): string {
  if (kind === 'pause' || kind === 'hang' || kind === 'memory') return kind
  return `${kind} ${detail
    .replaceAll(/\d+/g, '0')
    .replaceAll(/"[^"]*"/g, '""')
    .slice(0, 160)}`
}

/** Whether a reply reveals how the program is built. */
export function showsStack(text: string): boolean {
  return /\n\s+at |\\n\s+at [\w.<]|node:internal|\/node_modules\/|\/dist\/\w/.test(text)
}
