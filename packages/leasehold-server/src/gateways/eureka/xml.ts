/** A value as XML: `@name` is an attribute, `$` the text, and a list repeats its element. */
export function xmlOf(name: string, value: unknown): string {
  if (Array.isArray(value)) return value.map((each) => xmlOf(name, each)).join('')
  const element = elementName(name)
  if (typeof value !== 'object' || value === null) {
    return `<${element}>${escaped(String(value))}</${element}>`
  }
  let attributes = ''
  let content = ''
  for (const [key, inner] of Object.entries(value)) {
    if (key === '$') content += escaped(String(inner))
    else if (key.startsWith('@')) {
      attributes += ` ${elementName(key.slice(1))}="${escaped(String(inner))}"`
    } else content += xmlOf(key, inner)
  }
  return `<${element}${attributes}>${content}</${element}>`
}

/** Names of metadata may be anything; those of elements may not. */
function elementName(name: string): string {
  const clean = name.replace(/[^a-zA-Z0-9_.-]/g, '_')
  return /^[a-zA-Z_]/.test(clean) ? clean : `_${clean}`
}

/** One character that XML does not allow would make the whole answer unreadable. */
const FORBIDDEN = /[^\t\n\r\u0020-\u007e\u00a0-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu

function escaped(text: string): string {
  return text
    .replace(FORBIDDEN, '')
    .replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
}
