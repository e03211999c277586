import { type ErrorCode, LeaseholdError } from '../port/index.ts'

/** How to convert an error of an engine or its client, by its name, code and message. */
export type FaultRule = readonly [mark: RegExp, code: ErrorCode, meaning: string]

export type FaultOf = (error: unknown) => LeaseholdError

/** Converts by the first rule that matches. All other errors leave the outcome unknown. */
export function faultBy(rules: readonly FaultRule[], engine: string): FaultOf {
  return (error) => {
    const { name, code, message } = error as { name?: string; code?: unknown; message?: string }
    const description = message || String(code ?? error)
    const rule = rules.find(([mark]) => mark.test(`${name} ${code}: ${message}`))
    if (rule) return new LeaseholdError(rule[1], `${rule[2]} (${description})`, { cause: error })
    const unknown = `${engine} gave no answer (${description}): the call may have been carried out`
    return new LeaseholdError('unknown-outcome', unknown, { cause: error })
  }
}
