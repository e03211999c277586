import type { ActionResult, AdminAction } from '../../src/dashboard/admin-actions.ts'
import type { Me, SignInRequired } from '../../src/dashboard/routes.ts'

export type { ActionResult, AdminAction, Me }

const TIMEOUT_MS = 15_000

/** The server refused the request. */
export class Refused extends Error {
  readonly status: number
  readonly code: string | undefined

  constructor(status: number, message: string, code?: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

/** The outcome is unknown: the server did not answer, or does not know it either. */
export class NoAnswer extends Error {
  constructor(message = 'the server did not answer') {
    super(message)
  }
}

/** The body of an error response. */
interface Problem {
  readonly detail?: string
  readonly code?: string
  readonly outcome?: 'refused' | 'unknown'
}

/** Sends a request. Throws `Refused` if the server refuses it, and `NoAnswer` without an answer. */
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
    // The browser's own message, such as "Failed to fetch", is not helpful.
    throw new NoAnswer()
  })
  const answer = (await response.json().catch(() => ({}))) as Problem
  if (response.ok) return answer as Answer
  const message = answer.detail ?? `the server answered ${response.status}`
  if (answer.outcome === 'unknown') throw new NoAnswer(message)
  throw new Refused(response.status, message, answer.code)
}

export const api = {
  /** Throws `Refused` with status 401 before signing in. */
  me: async (): Promise<Me> => {
    const me = await ask<Me | SignInRequired>('GET', 'me')
    if ('signIn' in me) throw new Refused(401, me.signIn)
    return me
  },
  signIn: async (given: string) => {
    const accessToken = given.trim()
    // A browser refuses to send these characters, which would look like a missing answer.
    if (/[^\x21-\x7e]/.test(accessToken)) {
      throw new Refused(401, 'an access token has no spaces or special characters')
    }
    await ask('POST', 'session', {}, { authorization: `Bearer ${accessToken}` })
  },
  signOut: () => ask('DELETE', 'session'),
  perform: (action: AdminAction) => ask<ActionResult>('POST', 'actions', action),
  setDemo: (on: boolean) => ask<unknown>(on ? 'PUT' : 'DELETE', 'demo'),
}
