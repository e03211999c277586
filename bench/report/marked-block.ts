import { readFileSync, writeFileSync } from 'node:fs'

/** Replaces the part of a page between the two marks of a suite. */
export function writeMarkedBlock(file: URL, suite: string, block: string): void {
  const begin = `<!-- written by npm run bench -- ${suite}: begin -->`
  const end = `<!-- written by npm run bench -- ${suite}: end -->`
  const page = readFileSync(file, 'utf8')
  const [from, to] = [page.indexOf(begin), page.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`${file.pathname} lacks the marks ${begin} and ${end}`)
  writeFileSync(file, `${page.slice(0, from)}${begin}\n${block}\n${page.slice(to)}`)
}
