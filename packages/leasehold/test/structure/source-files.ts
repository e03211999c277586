import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseAst } from 'vitest/node'

/** A file as the rules see it: its path from the root of the repository, with slashes. */
export interface SourceFile {
  readonly path: string
  readonly text: string
}

export const ROOT = fileURLToPath(new URL('../../../../', import.meta.url))

/** Generated or downloaded files, which the rules ignore. */
const NOT_OURS = new Set(['node_modules', 'dist', '.git', '.stryker-tmp', 'coverage', 'results'])

/** The files below a folder of the repository whose names match. Does not use version control. */
export function filesUnder(folder: string, name: RegExp): SourceFile[] {
  const entries = readdirSync(join(ROOT, folder), { withFileTypes: true })
  return entries.flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return NOT_OURS.has(entry.name) ? [] : filesUnder(path, name)
    return entry.isFile() && name.test(entry.name) ? [readSource(path)] : []
  })
}

export function readSource(path: string): SourceFile {
  const name = relative(ROOT, join(ROOT, path)).replaceAll('\\', '/')
  return { path: name, text: readFileSync(join(ROOT, path), 'utf8') }
}

/** A node of a syntax tree, as far as the rules look into it. */
export interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [field: string]: unknown
}

export function parse(file: SourceFile): Node {
  const lang = file.path.endsWith('.tsx') ? 'tsx' : 'ts'
  return parseAst(file.text, { lang }, file.path) as unknown as Node
}

export function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value
}

/** Visits a node and all below it, unless `visit` answers false. */
export function walk(node: Node, visit: (node: Node) => boolean | undefined): void {
  if (visit(node) === false) return
  for (const value of Object.values(node)) {
    if (Array.isArray(value)) for (const item of value) if (isNode(item)) walk(item, visit)
    if (isNode(value)) walk(value, visit)
  }
}

/** The line number of a position in a file. */
export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length
}
