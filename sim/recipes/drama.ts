import type { Stage } from './stage.js'

/** A recipe in use, and what must hold of it. */
export interface Drama {
  /** Looks at what everybody believes; called every few milliseconds of true time. */
  look(): void
  /** All is healed: from here on what was promised must come about. */
  healed(): void
  /** All is over. */
  finish(): void
}

export type MakeDrama = (stage: Stage) => Drama
