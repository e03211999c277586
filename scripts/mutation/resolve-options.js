import { join } from 'node:path'

/** Resolves imports of the tests in `root`: the sources, a faster fast-check, no slow scenes. */
export function resolveOptions(root) {
  const substitute = (file) => join(root, 'scripts/mutation', file)
  const source = (path) => join(root, `packages/leasehold/src/${path}/index.ts`)
  return {
    resolve: {
      alias: [
        { find: /^fast-check$/, replacement: substitute('fast-check.js') },
        { find: /^\.\/other-scenes\.ts$/, replacement: substitute('no-scenes.js') },
        // The build is not mutated, so all imports go to the sources.
        { find: /^leasehold$/, replacement: source('.') },
        { find: /^leasehold\/(port|kernel|fence|testing)$/, replacement: source('$1') },
        { find: /^leasehold\/(memory|file|remote)$/, replacement: source('stores/$1') },
      ],
    },
  }
}
