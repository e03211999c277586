// Prints the packages that a user installs with ours and that are not for a release of Node that we
// support. npm warns of such a package, and leaves it out without a word if it is optional.
//
// npm installs the newest version that a range allows, and a minor version of a package may drop a
// release of Node. light-my-request, which fastify needs, did so: that is why leasehold-server names a
// version of it.
import { readFileSync } from 'node:fs'
import { minVersion, satisfies } from 'semver'

const { packages } = JSON.parse(
  readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8'),
)
const supported = packages[''].engines.node.split(' || ').map((range) => minVersion(range).version)

for (const [path, { version, engines, dev }] of Object.entries(packages)) {
  const range = engines?.node
  if (range === undefined || dev) continue
  const missing = supported.filter((release) => !satisfies(release, range))
  if (missing.length > 0)
    console.log(`${path} ${version} is not for Node ${missing.join(', ')}: ${range}`)
}
