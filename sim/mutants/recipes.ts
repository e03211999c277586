import { type Mutant, mutant } from './mutant.js'

/** Bugs in recipes. Worlds that use the recipe look for them. */
function inRecipe(recipe: string, one: Mutant): Mutant {
  return { ...one, recipe }
}

export const IN_RECIPES: readonly Mutant[] = [
  inRecipe(
    'election',
    mutant(
      'a lost term counts as valid until it is resigned',
      'recipes/election/term.js',
      "if (this.#end !== undefined)\n            return 'over';",
      "if (this.#resigned !== undefined)\n            return 'over';",
    ),
  ),
  inRecipe(
    'election',
    mutant(
      'a candidate gives up after the first failure',
      'recipes/election/election.js',
      'await this.#backOff(backoff(failures++, this.#client.random), until, signal, error);',
      'throw error;',
    ),
  ),
  inRecipe(
    'pool',
    mutant(
      'a served request stays in the queue',
      'recipes/pool/pending-request.js',
      'void this.#place?.[Symbol.asyncDispose]();',
      ';',
    ),
  ),
  inRecipe(
    'registry',
    mutant(
      'a lost instance does not return',
      'recipes/registry/registration/presence.js',
      'this.#timer = clock.timer(clock.now() + rest, () => void this.#return());',
      ';',
    ),
  ),
  inRecipe(
    'session',
    mutant(
      'a session is ended only in its own process',
      'recipes/session/session-table.js',
      'const ends = await Promise.all(claims.map(({ lease }) => this.#revoke(lease, why)));',
      'const ends = claims.map(() => true);',
    ),
  ),
  inRecipe(
    'pool',
    mutant(
      'a view ignores removals',
      'client/views/view.js',
      "if (type === 'removed')\n            places = old.filter((place) => place.token !== token);",
      "if (type === 'removed')\n            places = old;",
    ),
  ),
  inRecipe(
    'cache',
    mutant(
      'an overtaken loader stores its value anyway',
      'recipes/cache/entry-store.js',
      'if (made.behind !== hold.claimToken)\n                throw overtaken();',
      '',
    ),
  ),
  inRecipe(
    'cache',
    mutant(
      'every process that misses loads',
      'recipes/cache/cache.js',
      'if (hold instanceof Conflict)\n            return undefined;',
      'if (hold instanceof Conflict)\n            return JSON.stringify(await loader({ key, signal: new AbortController().signal, token: 0 }));',
    ),
  ),
]
