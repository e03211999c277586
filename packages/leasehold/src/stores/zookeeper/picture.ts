import type { Found, Look, NodeData } from './wire/index.ts'

/** What is to be looked at, as far as is known: `branches` may lead to more, `leaves` do not. */
export interface Wanted {
  readonly branches: readonly Look[]
  readonly leaves: readonly Look[]
}

/** Nodes, and what was found at each. */
export class Picture {
  readonly #data = new Map<string, NodeData | undefined>()
  readonly #children = new Map<string, readonly string[]>()

  add(looks: readonly Look[], found: readonly Found[]): void {
    for (const [index, { at, path }] of looks.entries()) {
      if (at === 'data') this.#data.set(path, found[index]?.data)
      else this.#children.set(path, found[index]?.children ?? [])
    }
  }

  has({ at, path }: Look): boolean {
    return at === 'data' ? this.#data.has(path) : this.#children.has(path)
  }

  data(path: string): NodeData | undefined {
    return this.#data.get(path)
  }

  children(path: string): readonly string[] {
    return this.#children.get(path) ?? []
  }

  /** Whether it was looked at, and was not there. */
  isGone(path: string): boolean {
    return this.#data.has(path) && this.#data.get(path) === undefined
  }
}
