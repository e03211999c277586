import { type Mutant, mutant, rare } from './mutant.js'

/** Bugs in the remote store and in the server's streams. */
export const STREAM: readonly Mutant[] = [
  mutant(
    'a tied lease outlives its connection',
    'server/stream/tied-leases.js',
    'for (const lease of this.#release(bond))\n            this.#revoke(lease);',
    'this.#release(bond);',
  ),
  mutant(
    'linger is ignored',
    'server/stream/tied-leases.js',
    'if (saidGoodbye || bond.linger === 0 || isEmpty)',
    'if (true)',
  ),
  mutant(
    'a client that returns within the linger time loses its leases',
    'server/stream/tied-leases.js',
    'bond.timer?.cancel();\n        bond.linger = linger;',
    'bond.linger = linger;',
  ),
  rare(
    'A stream must end after its client has another one, and the ties must matter then.',
    mutant(
      'the end of an old stream ends the ties of the new one',
      'server/stream/connection.js',
      'if (this.#tiedClient === undefined || !wasNewest)',
      'if (this.#tiedClient === undefined)',
    ),
  ),
  mutant(
    'a watch starts again on the next stream',
    'stores/remote/watches.js',
    'watch.target = { ...watch.target, from: notice.revision };',
    ';',
  ),
  mutant(
    'a watch is not resumed on the next stream',
    'stores/remote/watches.js',
    'for (const watch of this.#watches.values())\n            this.#ask(watch);',
    ';',
  ),
  mutant(
    'a break with a period ends at once over a stream',
    'server/stream/operations.js',
    'return store.revoke(request);',
    'return store.revoke({ ...request, after: undefined });',
  ),
  mutant(
    'a claim over a stream forgets its mode',
    'stores/remote/requests.js',
    'return isPlain(claim) ? key : { key, mode, limit, value };',
    'return isPlain(claim) ? key : { key, limit, value };',
  ),
]
