import type { Act, Done } from '../../src/dashboard/acts.ts'
import type { Me, Nobody } from '../../src/dashboard/routes.ts'

export type { Act, Done, Me }

const TIMEOUT_MS = 15_000

/** What the server says no with. */
export class Refusal extends Error {
  readonly status: number
  readonly code: string | undefined

  constructor(status: number, message: string, code?: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

/** Nobody knows whether it was done: the server said nothing, or that it does not know either. */
export class NoAnswer extends Error {
  constructor(message = 'the server did not answer') {
    super(message)
  }
}

/** What the server says where something is wrong. */
interface Complaint {
  readonly detail?: string
  readonly code?: string
  readonly outcome?: 'refused' | 'unknown'
}

/** Asks the server; fails with a `Refusal` where it says no, and with `NoAnswer` where it says nothing. */
async function ask<Answer>(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(`/dashboard/${path}`, {
    method,
    headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  }).catch(() => {
    // What a browser says of it, such as "Failed to fetch", helps nobody.
    throw new NoAnswer()
  })
  const answer = (await response.json().catch(() => ({}))) as Complaint
  if (response.ok) return answer as Answer
  const said = answer.detail ?? `the server answered ${response.status}`
  if (answer.outcome === 'unknown') throw new NoAnswer(said)
  throw new Refusal(response.status, said, answer.code)
}

export const api = {
  /** Fails with a `Refusal` of 401 where somebody has yet to sign in. */
  me: async (): Promise<Me> => {
    const me = await ask<Me | Nobody>('GET', 'me')
    if ('wantsToken' in me) throw new Refusal(401, me.wantsToken)
    return me
  },
  signIn: async (token: string) => {
    const text = token.trim()
    // A browser refuses to send these, and it would seem that the server had not answered.
    if (/[^\x21-\x7e]/.test(text)) throw new Refusal(401, 'no token has such characters')
    await ask('POST', 'session', {}, { authorization: `Bearer ${text}` })
  },
  signOut: () => ask('DELETE', 'session'),
  act: (act: Act) => ask<Done>('POST', 'acts', act),
  demonstrate: (on: boolean) => ask<unknown>(on ? 'PUT' : 'DELETE', 'demonstration'),
}
