/**
 * Counts loop iterations and function calls. Code that a mutant made endless then ends with an
 * error, instead of blocking the process until it is killed.
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
    throw new Error(`endless: ${this.count} loop iterations and calls`)
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

/** A Vite plugin: our loops and functions count in `globalThis.loopCount__`. */
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
    // From the end backwards, so that earlier positions stay valid; an inner end before an outer
    // one.
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
