/**
 * Counts the rounds of every loop and the calls of every function, so that what a mutant made
 * endless ends with an error instead of holding up the process until it is killed.
 */
export class LoopCount {
  count = 0
  limit = Infinity
  exceeded = false

  start(limit) {
    this.count = 0
    this.limit = limit
    this.exceeded = false
  }

  stop() {
    this.exceeded = true
    throw new Error(`it does not end: ${this.count} rounds and calls`)
  }
}

const COUNTED = new Set([
  'ForStatement',
  'ForInStatement',
  'ForOfStatement',
  'WhileStatement',
  'DoWhileStatement',
  'FunctionDeclaration',
  'FunctionExpression',
])
const CHECK = 'if (++loopCount__.count > loopCount__.limit) loopCount__.stop();'

/** A plugin for vite that makes the loops and functions of our own files count in `globalThis.loopCount__`. */
export const countLoops = {
  name: 'count-loops',
  enforce: 'post',
  transform(code, id) {
    if (!id.includes('/packages/')) return undefined
    const edits = []
    for (const { body } of countedIn(this.parse(code))) {
      const isBlock = body.type === 'BlockStatement'
      edits.push({ at: isBlock ? body.start + 1 : body.start, text: isBlock ? CHECK : `{${CHECK}` })
      if (!isBlock) edits.push({ at: body.end, text: '}' })
    }
    if (edits.length === 0) return undefined
    let changed = code
    // From the end on, so that what is before stays where it is; an inner end before an outer one.
    for (const { at, text } of edits.sort((one, other) => other.at - one.at)) {
      changed = changed.slice(0, at) + text + changed.slice(at)
    }
    return { code: changed, map: null }
  },
}

function countedIn(node) {
  if (Array.isArray(node)) return node.flatMap(countedIn)
  if (typeof node?.type !== 'string') return []
  const inside = Object.values(node).flatMap((value) =>
    value instanceof Object ? countedIn(value) : [],
  )
  return COUNTED.has(node.type) ? [node, ...inside] : inside
}
