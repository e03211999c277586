import { join } from 'node:path'

/** How the tests in `root` find what they import: the sources, a fast-check that does less, no slow scenes. */
export function resolveOptions(root) {
  const substitute = (file) => join(root, 'scripts/mutation', file)
  const source = (path) => join(root, `packages/leasehold/src/${path}/index.ts`)
  return {
    resolve: {
      alias: [
        { find: /^fast-check$/, replacement: substitute('fast-check.js') },
        { find: /^\.\/other-scenes\.ts$/, replacement: substitute('no-scenes.js') },
        // What was built is not mutated, so everyone imports the sources.
        { find: /^leasehold$/, replacement: source('.') },
        { find: /^leasehold\/(port|kernel|fence|testing)$/, replacement: source('$1') },
        { find: /^leasehold\/(memory|file|remote)$/, replacement: source('stores/$1') },
      ],
    },
  }
}
