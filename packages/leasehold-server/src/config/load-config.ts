import { invalid, show } from 'leasehold/port'
import { fileNameOf, flagOf, InvalidSetting, type Setting, variableOf } from './setting.ts'
import { CONFIG_FLAG, SETTING_NAMES, SETTINGS, type SettingName } from './settings.ts'
import { type FileError, readSmallFile } from './small-file.ts'

/** The command-line flags, by commander's names. */
export type Flags = Readonly<Record<string, string | boolean | undefined>>

export type Environment = Readonly<Record<string, string | undefined>>

/** The value of each setting; `undefined` if it is not set and has no default. */
export type Values = {
  readonly [Name in SettingName]: (typeof SETTINGS)[Name] extends { readonly defaultValue: string }
    ? ReturnType<(typeof SETTINGS)[Name]['read']>
    : ReturnType<(typeof SETTINGS)[Name]['read']> | undefined
}

export interface Config {
  readonly values: Values
  /** The source of each value, for messages: `--port`, `LEASEHOLD_PORT`, `port in leasehold.json`. */
  readonly origins: Readonly<Record<SettingName, string>>
}

/** The file that is read if --config is not given. */
const DEFAULT_FILE = 'leasehold.json'

interface Given {
  readonly value: string
  readonly origin: string
}

/**
 * Builds the configuration. A flag overrides the environment, the environment overrides the file,
 * and the file overrides the default. Throws `invalid-argument` for an invalid value and for an
 * unknown name in the file: a misspelt setting must not be ignored silently.
 */
export function loadConfig(flags: Flags, environment: Environment): Config {
  const inFile = readConfigFile(flags, environment)
  const values: Record<string, unknown> = {}
  const origins: Record<string, string> = {}
  for (const name of SETTING_NAMES) {
    const setting: Setting<unknown> = SETTINGS[name]
    const given = givenTo(setting, flags, environment) ?? inFile.get(name)
    const { value, origin } = given ?? { value: setting.defaultValue, origin: 'the default' }
    values[name] = value === undefined ? undefined : parseSetting(setting, { value, origin })
    origins[name] = origin
  }
  return { values: values as unknown as Values, origins: origins as Record<SettingName, string> }
}

function givenTo(
  setting: Setting<unknown>,
  flags: Flags,
  environment: Environment,
): Given | undefined {
  const flag = flags[fileNameOf(setting)]
  if (flag !== undefined) return { value: String(flag), origin: flagOf(setting) }
  const variable = variableOf(setting)
  const value = environment[variable]
  // An empty variable counts as unset.
  return value === undefined || value === '' ? undefined : { value, origin: variable }
}

function parseSetting<Value>(setting: Setting<Value>, { value, origin }: Given): Value {
  try {
    return setting.read(value)
  } catch (error) {
    if (!(error instanceof InvalidSetting)) throw error
    throw invalid(`${fileNameOf(setting)} is ${show(value)} (from ${origin}): ${error.message}`)
  }
}

function readConfigFile(flags: Flags, environment: Environment): Map<string, Given> {
  const named = givenTo(CONFIG_FLAG, flags, environment)
  const file = named === undefined ? DEFAULT_FILE : parseSetting(CONFIG_FLAG, named)
  let json: string
  try {
    json = readSmallFile(file).content.toString('utf8')
  } catch (error) {
    const { code, message } = error as FileError
    if (named === undefined && code === 'ENOENT') return new Map()
    const from = named === undefined ? 'read by default' : `from ${named.origin}`
    throw invalid(
      `cannot read the file ${show(file)} (${from}): ${message}. Use a file that exists and is readable`,
    )
  }
  return entriesOf(file, json)
}

function entriesOf(file: string, json: string): Map<string, Given> {
  const entries = new Map<string, Given>()
  for (const [name, value] of Object.entries(parseObject(file, json))) {
    if (!Object.hasOwn(SETTINGS, name)) {
      throw invalid(
        `${show(name)} in ${file} is not a setting. Remove it, or use one of ${SETTING_NAMES.join(', ')}`,
      )
    }
    if (!['string', 'number', 'boolean'].includes(typeof value)) {
      throw invalid(
        `${name} in ${file} is ${show(value)}: it must be a string, a number, true or false`,
      )
    }
    entries.set(name, { value: String(value), origin: `${name} in ${file}` })
  }
  return entries
}

function parseObject(file: string, json: string): object {
  try {
    const value: unknown = JSON.parse(json)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  } catch (error) {
    throw invalid(`${file} is not valid JSON: ${(error as Error).message}`)
  }
  throw invalid(`${file} must contain a JSON object, for example { "port": 7420 }`)
}
