import { randomBytes } from 'node:crypto'

/** Chance, as an argument: jitter and identifiers come from here, and a test can repeat them. */
export interface Random {
  /** A number from 0 (included) to 1 (excluded), for jitter. Not for secrets. */
  next(): number
  /** An identifier that nobody else will ever produce. */
  id(): string
}

export const systemRandom: Random = {
  next: () => Math.random(),
  id: () => randomBytes(16).toString('base64url'),
}
