import { fileNameOf, type Setting, variableOf } from './setting.ts'
import { CONFIG_FLAG, SETTING_NAMES, SETTINGS } from './settings.ts'

/** The settings as a Markdown table for docs/server.md. */
export function settingsTable(): string {
  const settings: Setting<unknown>[] = SETTING_NAMES.map((name) => SETTINGS[name])
  return [
    '| flag | environment | file | default | meaning |',
    '| --- | --- | --- | --- | --- |',
    ...[...settings, CONFIG_FLAG].map((setting) => {
      const inFile = setting === CONFIG_FLAG ? '' : `\`${fileNameOf(setting)}\``
      const { flag, help, defaultValue, defaultText = '' } = setting
      const shown = defaultValue === undefined ? defaultText : `\`${defaultValue}\``
      return `| \`${flag}\` | \`${variableOf(setting)}\` | ${inFile} | ${shown} | ${help} |`
    }),
  ].join('\n')
}
