import { type ErrorCode, LeaseholdError } from '../port/index.ts'

/** What an error of an engine or its client means, by its name, code and message. */
export type FaultRule = readonly [mark: RegExp, code: ErrorCode, meaning: string]

export type FaultOf = (error: unknown) => LeaseholdError

/** The first rule that fits. Everything else is unknown: the caller repeats it, or reads. */
export function faultBy(rules: readonly FaultRule[], engine: string): FaultOf {
  return (error) => {
    const { name, code, message } = error as { name?: string; code?: unknown; message?: string }
    const said = message || String(code ?? error)
    const rule = rules.find(([mark]) => mark.test(`${name} ${code}: ${message}`))
    if (rule) return new LeaseholdError(rule[1], `${rule[2]} (${said})`, { cause: error })
    const unknown = `${engine} gave no answer to rely on (${said}): it may have been done`
    return new LeaseholdError('unknown-outcome', unknown, { cause: error })
  }
}
