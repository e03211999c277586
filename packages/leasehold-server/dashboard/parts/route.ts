import { useEffect, useRef, useState } from 'preact/hooks'

/** The current view: `#/keys/jobs%2F1?holder=x` is the view `keys` at `jobs/1`. */
export interface Route {
  readonly view: string
  readonly at: string | undefined
  readonly query: URLSearchParams
}

/** Whether a fragment names a view. Other fragments are places on the page. */
export function isRoute(hash: string): boolean {
  return hash === '' || hash === '#' || hash.startsWith('#/')
}

export function routeIn(hash: string): Route {
  const [path = '', query = ''] = isRoute(hash) ? hash.slice(2).split('?') : []
  const [view = '', at] = path.split('/')
  return {
    view: view === '' ? 'overview' : view,
    at: at === undefined || at === '' ? undefined : decode(at),
    query: new URLSearchParams(query),
  }
}

export function hrefTo(view: string, at?: string): string {
  return at === undefined ? `#/${view}` : `#/${view}/${encodeURIComponent(at)}`
}

export function go(href: string): void {
  location.hash = href
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => routeIn(location.hash))
  useEffect(() => {
    const listener = () => {
      if (isRoute(location.hash)) setRoute(routeIn(location.hash))
    }
    addEventListener('hashchange', listener)
    return () => removeEventListener('hashchange', listener)
  }, [])
  return route
}

/** The filters of a view, in the query of its address: a reload and a shared link show the same. */
export interface Query {
  /** `''` if it is not there. */
  get(name: string): string
  /** `''` removes a name. */
  set(changes: Readonly<Record<string, string>>): void
}

/** Names in queries that are no filters: a link to another place in the view drops them. */
const PLACES = ['holder']

export function useQuery(view: string): Query {
  const [query, setQuery] = useState(() => routeIn(location.hash).query)
  const latest = useRef(query)
  const change = (to: URLSearchParams) => {
    latest.current = to
    setQuery(to)
  }
  useEffect(() => {
    const listener = () => {
      const next = routeIn(location.hash)
      if (next.view !== view || !isRoute(location.hash)) return
      if (next.query.size > 0) {
        change(next.query)
        return
      }
      // A link inside the view keeps the filters.
      const kept = new URLSearchParams(latest.current)
      for (const name of PLACES) kept.delete(name)
      change(kept)
      replaceQuery(kept)
    }
    addEventListener('hashchange', listener)
    return () => removeEventListener('hashchange', listener)
  }, [view])
  return {
    get: (name) => query.get(name) ?? '',
    set: (changes) => {
      const next = new URLSearchParams(latest.current)
      for (const [name, value] of Object.entries(changes)) {
        if (value === '') next.delete(name)
        else next.set(name, value)
      }
      change(next)
      replaceQuery(next)
    },
  }
}

/** Without an entry in the browser's history, and without an event. */
function replaceQuery(query: URLSearchParams): void {
  const path = location.hash.split('?')[0] || '#/'
  try {
    history.replaceState(history.state, '', query.size > 0 ? `${path}?${query}` : path)
  } catch {
    // Some browsers refuse more than a hundred changes in half a minute. Only the address is older then.
  }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
