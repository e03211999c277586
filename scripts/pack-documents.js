// Puts the documents of the repository into a package that is about to be packed, since npm takes
// only what lies in the package's own folder. Run by npm, in that folder. The copies are ignored by
// version control.
import { copyFileSync } from 'node:fs'

for (const name of ['README.md', 'CHANGELOG.md', 'LICENSE']) copyFileSync(`../../${name}`, name)
