import type { Key } from '../../port/index.ts'
import type { Journal } from './journal.ts'
import type { KeyState } from './tree.ts'
import type { Session } from './wire/index.ts'

interface Gathered {
  readonly keys: Key[]
  readonly states: Promise<KeyState[]>
}

/**
 * Gathers the keys that are to be looked at in one turn of the event loop, and looks at them in one
 * request. It leaves behind all that was asked of the same session in that turn, and is answered
 * behind it.
 */
export class JointLooks {
  readonly #journal: Journal
  readonly #gathered = new Map<Session, Gathered>()

  constructor(journal: Journal) {
    this.#journal = journal
  }

  async keys(names: readonly Key[], session: Session): Promise<KeyState[]> {
    const { keys, states } = this.#gathered.get(session) ?? this.#gather(session)
    const from = keys.length
    keys.push(...names)
    return (await states).slice(from, from + names.length)
  }

  #gather(session: Session): Gathered {
    const keys: Key[] = []
    const states = new Promise<void>((resolve) => this.#journal.clock.defer(resolve)).then(() => {
      this.#gathered.delete(session)
      return this.#journal.tree.keys(keys, session)
    })
    const gathered = { keys, states }
    this.#gathered.set(session, gathered)
    return gathered
  }
}
