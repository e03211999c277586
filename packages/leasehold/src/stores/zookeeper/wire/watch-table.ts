/** Hears what happens below a path. */
export interface Listener {
  heard(what: 'created' | 'deleted' | 'changed', path: string): void
  /** Something may have been missed: the connection was broken, and is there again. */
  missed(): void
}

const KINDS: Record<number, 'created' | 'deleted' | 'changed'> = {
  1: 'created',
  2: 'deleted',
  3: 'changed',
}

/** Who is to be called when the server tells of something. */
export class WatchTable {
  readonly #once = new Map<string, Set<() => void>>()
  readonly #listeners: { readonly path: string; readonly listener: Listener }[] = []

  add(path: string, run: () => void): void {
    const runs = this.#once.get(path) ?? new Set()
    this.#once.set(path, runs.add(run))
  }

  remove(path: string, run: () => void): void {
    const runs = this.#once.get(path)
    runs?.delete(run)
    if (runs?.size === 0) this.#once.delete(path)
  }

  listen(path: string, listener: Listener): void {
    this.#listeners.push({ path, listener })
  }

  heard(type: number, path: string): void {
    const runs = this.#once.get(path)
    this.#once.delete(path)
    for (const run of runs ?? []) run()
    const what = KINDS[type]
    if (what === undefined) return
    for (const { path: above, listener } of this.#listeners) {
      if (path.startsWith(above) && path[above.length] === '/') listener.heard(what, path)
    }
  }

  /** Tells everyone to look again. */
  missed(): void {
    const runs = [...this.#once.values()].flatMap((each) => [...each])
    this.#once.clear()
    for (const run of runs) run()
    for (const { listener } of [...this.#listeners]) listener.missed()
  }

  clear(): void {
    this.#once.clear()
    this.#listeners.length = 0
  }
}
