import { posix } from 'node:path'
import { lineAt, parse, type SourceFile, walk } from './source-files.ts'

/** The habits of this repository, each as a function from a file to its violations. */
export type Habit = (file: SourceFile) => string[]

const FILE_LINES_MAX = 500
const FUNCTION_LINES_MAX = 60
const LOG_LINES_MAX = 300
const EXPLAINED = /\blong because /

/** A long file must explain itself, in a comment at its head. */
export const shortFiles: Habit = ({ path, text }) => {
  const lines = text.trimEnd().split('\n')
  if (lines.length <= FILE_LINES_MAX || isExplained(text)) return []
  return [
    `${path} has ${lines.length} lines: divide it, or say in a comment at its head '// long because …'`,
  ]
}

function isExplained(text: string): boolean {
  return EXPLAINED.test(text.split('\n', 10).join('\n'))
}

/** The log of an engine is one small folder; shared code and the engine's client are elsewhere. */
export function smallLogs(files: readonly SourceFile[]): string[] {
  const lines = new Map<string, number>()
  for (const { path, text } of files) {
    const folder = /^.*\/src\/logs\/[^/]+(?=\/(?!client\/))/.exec(path)?.[0]
    if (folder) lines.set(folder, (lines.get(folder) ?? 0) + text.trimEnd().split('\n').length)
  }
  return [...lines]
    .filter(([, count]) => count > LOG_LINES_MAX)
    .map(([folder, count]) => `${folder} has ${count} lines: at most ${LOG_LINES_MAX} are allowed`)
}

/** A long function too, in the comment above it, unless its file explains itself. */
export const shortFunctions: Habit = (file) => {
  const faults: string[] = []
  if (isExplained(file.text)) return faults
  walk(parse(file), (node) => {
    if (!/^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(node.type)) {
      return undefined
    }
    const line = lineAt(file.text, node.start)
    const length = lineAt(file.text, node.end) - line + 1
    if (length > FUNCTION_LINES_MAX && !EXPLAINED.test(commentAbove(file.text, line))) {
      faults.push(
        `${file.path}:${line} is a function of ${length} lines: divide it, or say above it '// long because …'`,
      )
    }
    return undefined
  })
  return faults
}

function commentAbove(text: string, line: number): string {
  const lines = text.split('\n')
  let first = line - 1
  while (first > 0 && /^\s*(\/\/|\/?\*)/.test(lines[first - 1]!)) first--
  return lines.slice(first, line - 1).join('\n')
}

// Assembled from parts, so that this file does not break its own rules.
const LEFT_TO_DO = new RegExp(
  `\\b(${['TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X', 'HA' + 'CK'].join('|')})\\b`,
)

/** Unfinished work is done, or is noted in the issue tracker. */
export const nothingLeftToDo: Habit = (file) =>
  linesWith(file, LEFT_TO_DO).map((at) => `${at} leaves something to do`)

const SKIPS = /\b(it|test|describe)(\.\w+)*\.(skip|todo|only|fails)\b/

/**
 * A test is skipped only with a reason beside it (a condition, as in `skipIf`, is one). No test
 * runs alone.
 */
export const reasonedSkips: Habit = ({ path, text }) => {
  const lines = text.split('\n')
  return lines.flatMap((line, index) => {
    const kind = SKIPS.exec(line)?.[3]
    if (!kind) return []
    const near = `${commentAbove(text, index + 1)} ${line}`
    const isReasoned = kind !== 'only' && /\/[/*].*\bbecause\b/is.test(near)
    return isReasoned ? [] : [`${path}:${index + 1} has .${kind}: say '// because …' beside it`]
  })
}

const PLACES = new RegExp(
  [
    // Folders of one machine.
    '(^|[^\\w.])/(home|root|Users|wor[k])/',
    '\\b[A-Z]:\\\\\\\\',
    // The reader chooses the package registry.
    `${'registry'}\\.(npmjs|yarnpkg)\\.`,
    '^\\s*registry\\s*=',
  ].join('|'),
)

/** No file names the machine where it was written. */
export const noPlaces: Habit = (file) =>
  linesWith(file, PLACES).map((at) => `${at} names a place outside of the repository`)

const VAGUE = /(^|[-/])(utils?|helpers?|misc|common|manager|service|impl)([-./]|$)/

/** File names are kebab-case and say what the file contains. */
export const plainNames: Habit = ({ path }) => {
  const name = posix.basename(path)
  const faults: string[] = []
  if (!/^[a-z0-9]+(-[a-z0-9]+)*(\.(test|config|d))?\.tsx?$/.test(name)) {
    faults.push(`${path} is not in kebab-case`)
  }
  if (VAGUE.test(path)) faults.push(`${path} does not say what is in it`)
  return faults
}

export const namedExports: Habit = (file) =>
  linesWith(file, /^export default\b/).map((at) => `${at} has no name: use a named export`)

function linesWith({ path, text }: SourceFile, pattern: RegExp): string[] {
  return text
    .split('\n')
    .flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1}`] : []))
}
