import { LeaseholdError } from '../port/index.ts'

/** Takes the place of `index.ts` in a bundle for browsers and edge workers: see package.json. */
export function networkProbe(): never {
  throw new LeaseholdError(
    'unsupported',
    'a bundle for browsers cannot check instances over the network: run the checker in Node, or give it a probe',
  )
}

export async function networkRefusal(): Promise<undefined> {}
