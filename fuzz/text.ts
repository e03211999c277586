/** A description of a long string, so that inputs stay small. */
export interface Repeated {
  readonly before?: string
  readonly repeat: string
  readonly times: number
  readonly after?: string
}

export type Text = string | Repeated

/** The maximum size of an input: the server's limit for a frame, and a little more. */
export const TEXT_MAX = 33 << 20

export function expand(text: Text): string {
  if (typeof text === 'string') return text
  const times = Math.min(text.times, Math.floor(TEXT_MAX / Math.max(1, text.repeat.length)))
  return (text.before ?? '') + text.repeat.repeat(Math.max(0, times)) + (text.after ?? '')
}

export function lengthOf(text: Text): number {
  if (typeof text === 'string') return text.length
  return text.repeat.length * text.times + (text.before?.length ?? 0) + (text.after?.length ?? 0)
}
