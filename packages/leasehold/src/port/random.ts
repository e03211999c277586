/** Randomness as an argument: jitter and identifiers come from here, so a test can repeat them. */
export interface Random {
  /** A number from 0 (included) to 1 (excluded), for jitter. Not for secrets. */
  next(): number
  /** An identifier that nothing else will ever produce. */
  id(): string
}

export const systemRandom: Random = {
  next: () => Math.random(),
  id: () => base64url(crypto.getRandomValues(new Uint8Array(16))),
}

function base64url(bytes: Uint8Array): string {
  const text = btoa(String.fromCharCode(...bytes))
  return text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}
