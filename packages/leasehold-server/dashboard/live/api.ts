import type { Act } from '../../src/dashboard/acts.ts'
import type { Me, Nobody } from '../../src/dashboard/routes.ts'

export type { Act, Me }

/** What the server says no with. */
export class Refusal extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** Asks the server; fails with a `Refusal` where it says no, and otherwise where it says nothing. */
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
    signal: AbortSignal.timeout(15_000),
  })
  const answer = (await response.json().catch(() => ({}))) as { readonly detail?: string }
  if (response.ok) return answer as Answer
  throw new Refusal(response.status, answer.detail ?? `the server answered ${response.status}`)
}

export const api = {
  /** Fails with a `Refusal` of 401 where somebody has yet to sign in. */
  me: async (): Promise<Me> => {
    const me = await ask<Me | Nobody>('GET', 'me')
    if ('wantsToken' in me) throw new Refusal(401, me.wantsToken)
    return me
  },
  signIn: (token: string) =>
    ask('POST', 'session', {}, { authorization: `Bearer ${token.trim()}` }),
  signOut: () => ask('DELETE', 'session'),
  act: (act: Act) => ask<unknown>('POST', 'acts', act),
  demonstrate: (on: boolean) => ask<unknown>(on ? 'PUT' : 'DELETE', 'demonstration'),
}
