/** A page has the one store of its server: there is no other that it could open. */
export function openStore(url: string): never {
  throw new Error(`a page cannot open ${url}`)
}
