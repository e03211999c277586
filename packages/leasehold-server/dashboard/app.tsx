import { useEffect, useState } from 'preact/hooks'
import { api } from './live/api.ts'
import { formatSpan } from './model/format.ts'
import { ActionDialog } from './parts/action-dialog.tsx'
import { useLive } from './parts/context.ts'
import { type Route, useRoute } from './parts/route.ts'
import { nextTheme, setTheme, type Theme, themeNow } from './parts/theme.ts'
import { Agents } from './views/agents.tsx'
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
  ['agents', 'Agents'],
] as const

export function App() {
  const route = useRoute()
  const live = useLive()
  const { status } = live
  useShortcuts()
  useLevels()
  useEffect(() => {
    const name = VIEWS.find(([view]) => view === route.view)?.[1] ?? 'Leasehold'
    document.title = `${name} · Leasehold`
    // If the navigation does not fit, scroll the current view's link into sight.
    const current = document.querySelector('nav [aria-current]')
    current?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [route.view])
  if (status.is === 'signed-out') return <SignIn why={status.why} />
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
      <ActionDialog />
    </div>
  )
}

/** Moves the focus to the content; the URL fragment is used for the view. */
function skip(event: MouseEvent): void {
  event.preventDefault()
  const main = document.getElementById('main')
  main?.focus()
  main?.scrollIntoView()
}

function View({ route }: { readonly route: Route }) {
  const { status } = useLive()
  if (status.is === 'refused') {
    return (
      <div class="empty">
        <p class="empty-title">You have no access to this page</p>
        <p>{status.why}</p>
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
    case 'agents':
      return <Agents route={route} />
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
      <span class="brand">
        <a class="name" href="#/">
          <Logo />
          Leasehold
        </a>
        {me !== undefined && <span class="quiet version">{me.version}</span>}
      </span>
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
        <ConnectionMark />
        <a href="/docs">Docs</a>
        <button type="button" class="bare" onClick={turn}>
          <span aria-hidden="true">◐ </span>
          <span class="colours-word">Colours: </span>
          {theme}
        </button>
        {me?.isKnown && <span class="who">{me.name}</span>}
        {me?.isSignedIn && <SignOut />}
      </div>
    </header>
  )
}

/** The icon of the page, without its ground. */
function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" />
      <path class="stem" d="M9 7v18h14" />
      <path class="tip" d="M17 7h6v6" />
    </svg>
  )
}

/** Ends the session of this browser, and shows an error if the server did not end it. */
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

/** Shows whether the page is up to date. */
function ConnectionMark() {
  const { status, me } = useLive()
  const word = status.is === 'live' ? 'live' : status.is === 'loading' ? 'loading' : 'connecting'
  const tone = status.is === 'live' ? 'ok' : status.is === 'lost' ? 'bad' : 'warn'
  return (
    <span class="line" role="status" title={me && `${me.engine} store, version ${me.version}`}>
      <span class={`mark ${tone}`}>{status.is === 'lost' ? 'not connected' : word}</span>
    </span>
  )
}

/** An important notice above every view. */
function Notice() {
  const { status, mirror, feed } = useLive()
  if (status.is === 'lost') {
    return (
      <div class="notice bad" role="alert">
        No contact with the server for {formatSpan(Date.now() - status.since)}. This page shows the
        state at that time and reconnects automatically.
      </div>
    )
  }
  if (status.is === 'loading') {
    return <div class="notice">Loading: {mirror.keys.size.toLocaleString('en')} keys so far.</div>
  }
  if (feed.state?.demo === 'running') {
    return (
      <div class="notice demo">
        <span>
          A demo is running in this server.
          <span class="more"> Everything named demo belongs to it.</span>
        </span>
        <EndDemo />
      </div>
    )
  }
  return null
}

function EndDemo() {
  const { me } = useLive()
  const [isBusy, setBusy] = useState(false)
  if (!me?.demo) return null
  const end = async () => {
    setBusy(true)
    await api.setDemo(false).catch(() => {})
    setBusy(false)
  }
  return (
    <button type="button" disabled={isBusy} onClick={() => void end()}>
      End it
    </button>
  )
}

/** `/` focuses the search, and a digit opens the view at that position. */
function useShortcuts(): void {
  useEffect(() => {
    const listener = (event: KeyboardEvent) => {
      const { target, key } = event
      const isTyping = target instanceof Element && target.matches('input, select, textarea')
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return
      // An open dialog takes the keys.
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
