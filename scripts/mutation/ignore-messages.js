import { declareValuePlugin, PluginKind } from '@stryker-mutator/api/plugin'

const PROSE = /\S\s+\S/

/**
 * A string with a space between words is a message for people. Tests check the code of an error,
 * not its message, so messages are not mutated. Codes, keys, names and separators are.
 */
function shouldIgnore(path) {
  const { node } = path
  const isText = path.isStringLiteral() && PROSE.test(node.value)
  const isTemplate =
    path.isTemplateLiteral() && node.quasis.some(({ value }) => PROSE.test(value.raw))
  return isText || isTemplate ? 'a message for people' : undefined
}

export const strykerPlugins = [declareValuePlugin(PluginKind.Ignore, 'messages', { shouldIgnore })]
