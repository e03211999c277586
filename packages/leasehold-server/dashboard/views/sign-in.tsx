import { useState } from 'preact/hooks'
import { api } from '../live/api.ts'
import { useLive } from '../parts/context.ts'

/** Asks for a token. It goes to the server once, which gives the browser a session for it. */
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
        <h1>This server wants to know who looks</h1>
        {why !== undefined && <p class="problem">{why}</p>}
        <label class="field">
          <span>Token</span>
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
          One that may look and nothing else is made by{' '}
          <code>leasehold token create wall --right read,watch:</code>. The token is not kept here:
          the browser gets a session of twelve hours that ends with it.
        </p>
      </form>
    </main>
  )
}
