import { useEffect, useState } from 'preact/hooks'
import { api } from './live/api.ts'
import { spoken } from './model/format.ts'
import { ActDialog } from './parts/act-dialog.tsx'
import { useLive } from './parts/context.ts'
import { type Route, useRoute } from './parts/route.ts'
import { nextTheme, setTheme, type Theme, themeNow } from './parts/theme.ts'
import { Elections } from './views/elections.tsx'
import { Keys } from './views/keys.tsx'
import { Leases } from './views/leases.tsx'
import { Overview, useLevels } from './views/overview.tsx'
import { Pools } from './views/pools.tsx'
import { Services } from './views/services.tsx'
import { Sessions } from './views/sessions.tsx'
import { SignIn } from './views/sign-in.tsx'

const VIEWS = [
  ['overview', 'Overview'],
  ['keys', 'Keys'],
  ['leases', 'Leases'],
  ['services', 'Services'],
  ['elections', 'Elections'],
  ['pools', 'Pools'],
  ['sessions', 'Sessions'],
] as const

export function App() {
  const route = useRoute()
  const live = useLive()
  const { standing } = live
  useShortcuts()
  useLevels()
  useEffect(() => {
    const name = VIEWS.find(([view]) => view === route.view)?.[1] ?? 'Leasehold'
    document.title = `${name} · Leasehold`
    // Where the views do not all fit, the one that is shown must be seen.
    const current = document.querySelector('nav [aria-current]')
    current?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [route.view])
  if (standing.is === 'signed-out') return <SignIn why={standing.why} />
  return (
    <div class="shell">
      {/* biome-ignore lint/a11y/useValidAnchor: it leads to a place on this page. */}
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <Header route={route} />
      <Notice />
      <main id="main" class={`view-${route.view}`} tabIndex={-1}>
        <View route={route} />
      </main>
      <ActDialog />
    </div>
  )
}

/** Goes to the content by hand: the fragment of the address says which view is shown. */
function skip(event: MouseEvent): void {
  event.preventDefault()
  const main = document.getElementById('main')
  main?.focus()
  main?.scrollIntoView()
}

function View({ route }: { readonly route: Route }) {
  const { standing } = useLive()
  if (standing.is === 'refused') {
    return (
      <div class="empty">
        <p class="empty-title">The server does not show this</p>
        <p>{standing.why}</p>
      </div>
    )
  }
  switch (route.view) {
    case 'keys':
      return <Keys route={route} />
    case 'leases':
      return <Leases route={route} />
    case 'services':
      return <Services route={route} />
    case 'elections':
      return <Elections />
    case 'pools':
      return <Pools route={route} />
    case 'sessions':
      return <Sessions />
    default:
      return (
        <>
          <h1 class="unseen">Overview</h1>
          <Overview />
        </>
      )
  }
}

function Header({ route }: { readonly route: Route }) {
  const { me } = useLive()
  const [theme, show] = useState<Theme>(themeNow)
  const turn = () => {
    const next = nextTheme(theme)
    setTheme(next)
    show(next)
  }
  return (
    <header>
      <a class="name" href="#/">
        Leasehold
      </a>
      <nav aria-label="Views">
        {VIEWS.map(([view, name]) => (
          <a
            key={view}
            href={view === 'overview' ? '#/' : `#/${view}`}
            aria-current={route.view === view ? 'page' : undefined}
          >
            {name}
          </a>
        ))}
      </nav>
      <div class="corner">
        <Line />
        <button type="button" class="bare" onClick={turn}>
          Colours: {theme}
        </button>
        {me?.isKnown && <span class="who">{me.name}</span>}
        {me?.isSignedIn && <SignOut />}
      </div>
    </header>
  )
}

/** Ends the session of this browser; where the server did not, whoever leaves must know. */
function SignOut() {
  const live = useLive()
  const [problem, setProblem] = useState<string | undefined>(undefined)
  const leave = async () => {
    setProblem(undefined)
    try {
      await api.signOut()
      live.again()
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error))
    }
  }
  return (
    <>
      {problem !== undefined && (
        <span class="mark bad" role="alert">
          not signed out: {problem}
        </span>
      )}
      <button type="button" class="bare" onClick={() => void leave()}>
        sign out
      </button>
    </>
  )
}

/** Whether what is shown is how things are. */
function Line() {
  const { standing, me } = useLive()
  const word =
    standing.is === 'live' ? 'live' : standing.is === 'loading' ? 'reading' : 'connecting'
  const tone = standing.is === 'live' ? 'ok' : standing.is === 'lost' ? 'bad' : 'warn'
  return (
    <span class="line" role="status" title={me && `${me.engine} store, version ${me.version}`}>
      <span class={`mark ${tone}`}>{standing.is === 'lost' ? 'not connected' : word}</span>
    </span>
  )
}

/** What must not be overlooked, above every view. */
function Notice() {
  const { standing, mirror, feed } = useLive()
  if (standing.is === 'lost') {
    return (
      <div class="notice bad" role="alert">
        The server has not been heard of for {spoken(Date.now() - standing.since)}. What is shown is
        as it was then; this page connects again by itself.
      </div>
    )
  }
  if (standing.is === 'loading') {
    return (
      <div class="notice">
        Reading what is held: {mirror.keys.size.toLocaleString('en')} keys so far.
      </div>
    )
  }
  if (feed.state?.demonstration === 'running') {
    return (
      <div class="notice demo">
        <span>
          A demonstration runs in this server.
          <span class="more"> All that is called demo belongs to it.</span>
        </span>
        <EndDemonstration />
      </div>
    )
  }
  return null
}

function EndDemonstration() {
  const { me } = useLive()
  const [isBusy, setBusy] = useState(false)
  if (!me?.demonstration) return null
  const end = async () => {
    setBusy(true)
    await api.demonstrate(false).catch(() => {})
    setBusy(false)
  }
  return (
    <button type="button" disabled={isBusy} onClick={() => void end()}>
      End it
    </button>
  )
}

/** `/` goes to the search of a view, and a number to the view of that place. */
function useShortcuts(): void {
  useEffect(() => {
    const listener = (event: KeyboardEvent) => {
      const { target, key } = event
      const isTyping = target instanceof Element && target.matches('input, select, textarea')
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return
      // What a dialog asks about is answered first.
      if (document.querySelector('dialog[open]') !== null) return
      const view = VIEWS[Number(key) - 1]?.[0]
      if (view !== undefined) location.hash = view === 'overview' ? '#/' : `#/${view}`
      else if (key === '/') document.querySelector<HTMLElement>('[data-search]')?.focus()
      else return
      event.preventDefault()
    }
    addEventListener('keydown', listener)
    return () => removeEventListener('keydown', listener)
  }, [])
}
