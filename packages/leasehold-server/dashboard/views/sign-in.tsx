import { useState } from 'preact/hooks'
import { api } from '../live/api.ts'
import { useLive } from '../parts/context.ts'

/** Asks for an access token. It is sent once, and the server starts a session for the browser. */
export function SignIn({ why }: { readonly why: string | undefined }) {
  const live = useLive()
  const [token, setToken] = useState('')
  const [problem, setProblem] = useState<string | undefined>(undefined)
  const submit = async (event: Event) => {
    event.preventDefault()
    try {
      await api.signIn(token)
      setToken('')
      live.again()
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error))
    }
  }
  return (
    <main class="gate">
      <form class="panel" onSubmit={submit}>
        <h1>Sign in to this server</h1>
        {why !== undefined && <p class="problem">{why}</p>}
        <label class="field">
          <span>Access token</span>
          <input
            type="password"
            autocomplete="current-password"
            placeholder="lh_…"
            value={token}
            required
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        {problem !== undefined && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <div class="buttons">
          <button type="submit" class="primary">
            Sign in
          </button>
        </div>
        <p class="quiet">
          Create a read-only one with{' '}
          <code>leasehold access-token create wall --right read,watch:</code>. The browser does not
          store it. It gets a session of twelve hours, which ends if the access token is revoked.
        </p>
      </form>
    </main>
  )
}
