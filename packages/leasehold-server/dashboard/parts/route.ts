import { useEffect, useState } from 'preact/hooks'

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

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
