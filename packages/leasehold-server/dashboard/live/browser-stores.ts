/** A page uses only its server's store; the build uses this instead of `client/open-store.ts`. */
export function openStore(url: string): never {
  throw new Error(`a page cannot open ${url}`)
}
