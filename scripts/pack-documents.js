// Copies the documents of the repository into a package before it is packed, because npm packs only
// files in the package's own folder. npm runs it in that folder. Version control ignores the copies.
import { copyFileSync } from 'node:fs'

for (const name of ['README.md', 'CHANGELOG.md', 'LICENSE']) copyFileSync(`../../${name}`, name)
