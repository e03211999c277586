import { fileNameOf, type Setting, variableOf } from './setting.ts'
import { CONFIG_FLAG, SETTING_NAMES, SETTINGS } from './settings.ts'

/** The settings as a table in Markdown, for docs/server.md. */
export function settingsTable(): string {
  const settings: Setting<unknown>[] = SETTING_NAMES.map((name) => SETTINGS[name])
  return [
    '| flag | environment | file | if not given | what it is |',
    '| --- | --- | --- | --- | --- |',
    ...[...settings, CONFIG_FLAG].map((setting) => {
      const inFile = setting === CONFIG_FLAG ? '' : `\`${fileNameOf(setting)}\``
      const { otherwise, inWords = '' } = setting
      const standard = otherwise === undefined ? inWords : `\`${otherwise}\``
      const { flag, help } = setting
      return `| \`${flag}\` | \`${variableOf(setting)}\` | ${inFile} | ${standard} | ${help} |`
    }),
  ].join('\n')
}
