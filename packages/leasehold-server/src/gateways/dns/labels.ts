import { createHash } from 'node:crypto'

const LABEL_MAX = 63
const HASH_LENGTH = 8

/**
 * The label for a name of the registry, which may have any characters: in lower case, with a hyphen
 * for each character that is unusual in host names, and cut after 63.
 */
export function labelOf(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9_-]/g, '-')
    .slice(0, LABEL_MAX)
}

/**
 * A different label for each name. If two names have the same label, the second one, in the order
 * of the names, also gets a part of its hash.
 */
export function uniqueLabels(names: Iterable<string>): ReadonlyMap<string, string> {
  const byLabel = new Map<string, string>()
  for (const name of names) {
    const label = labelOf(name)
    byLabel.set(byLabel.has(label) ? hashedLabel(label, name) : label, name)
  }
  return byLabel
}

function hashedLabel(label: string, name: string): string {
  const short = label.slice(0, LABEL_MAX - HASH_LENGTH - 1)
  const hash = createHash('sha256').update(name).digest('hex')
  return `${short}-${hash.slice(0, HASH_LENGTH)}`
}
