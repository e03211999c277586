import { readFileSync, writeFileSync } from 'node:fs'

/** Replaces what stands in a page between the two marks of a suite. */
export function writeBlock(file: URL, suite: string, block: string): void {
  const begin = `<!-- written by npm run bench -- ${suite}: begin -->`
  const end = `<!-- written by npm run bench -- ${suite}: end -->`
  const text = readFileSync(file, 'utf8')
  const [from, to] = [text.indexOf(begin), text.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`${file.pathname} lacks the marks ${begin} and ${end}`)
  writeFileSync(file, `${text.slice(0, from)}${begin}\n${block}\n${text.slice(to)}`)
}
