import { invalid, show } from 'leasehold/port'
import { Complaint, fileNameOf, flagOf, type Setting, variableOf } from './setting.ts'
import { CONFIG_FLAG, SETTING_NAMES, SETTINGS, type SettingName } from './settings.ts'
import { type FileFault, readWhole } from './whole-file.ts'

/** What was given on the command line, by commander's names. */
export type Flags = Readonly<Record<string, string | boolean | undefined>>

export type Environment = Readonly<Record<string, string | undefined>>

/** The value of each setting. Those without one, and without a standard, are not there. */
export type Values = {
  readonly [Name in SettingName]: (typeof SETTINGS)[Name] extends { readonly otherwise: string }
    ? ReturnType<(typeof SETTINGS)[Name]['read']>
    : ReturnType<(typeof SETTINGS)[Name]['read']> | undefined
}

export interface Config {
  readonly values: Values
  /** Where each came from, for messages: `--port`, `LEASEHOLD_PORT`, `port in leasehold.json`. */
  readonly origins: Readonly<Record<SettingName, string>>
}

/** Where a file is looked for that nobody has named. */
const USUAL_FILE = 'leasehold.json'

interface Given {
  readonly text: string
  readonly origin: string
}

/**
 * Puts the configuration together: a flag comes before the environment, the environment before the
 * file, the file before the standard. Refused with `invalid-argument` where a value cannot be
 * understood, with the value, where it came from and what it must be; and where the file has a
 * name that means nothing, since a setting with a slip in its name would silently not be set.
 */
export function loadConfig(flags: Flags, environment: Environment): Config {
  const inFile = readConfigFile(flags, environment)
  const values: Record<string, unknown> = {}
  const origins: Record<string, string> = {}
  for (const name of SETTING_NAMES) {
    const setting: Setting<unknown> = SETTINGS[name]
    const given = givenTo(setting, flags, environment) ?? inFile.get(name)
    const { text, origin } = given ?? { text: setting.otherwise, origin: 'the standard' }
    values[name] = text === undefined ? undefined : understood(setting, { text, origin })
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
  if (flag !== undefined) return { text: String(flag), origin: flagOf(setting) }
  const variable = variableOf(setting)
  const text = environment[variable]
  // A variable that is set to nothing is how one is switched off in many places.
  return text === undefined || text === '' ? undefined : { text, origin: variable }
}

function understood<Value>(setting: Setting<Value>, { text, origin }: Given): Value {
  try {
    return setting.read(text)
  } catch (error) {
    if (!(error instanceof Complaint)) throw error
    throw invalid(`${fileNameOf(setting)} is ${show(text)} (from ${origin}): ${error.message}`)
  }
}

function readConfigFile(flags: Flags, environment: Environment): Map<string, Given> {
  const named = givenTo(CONFIG_FLAG, flags, environment)
  const file = named === undefined ? USUAL_FILE : understood(CONFIG_FLAG, named)
  let text: string
  try {
    text = readWhole(file).content.toString('utf8')
  } catch (error) {
    const { code, message } = error as FileFault
    if (named === undefined && code === 'ENOENT') return new Map()
    const from = named === undefined ? 'which is read if it is there' : `from ${named.origin}`
    throw invalid(
      `the file ${show(file)} (${from}) cannot be read (${message}): name one that is there and may be read`,
    )
  }
  return entriesOf(file, text)
}

function entriesOf(file: string, text: string): Map<string, Given> {
  const entries = new Map<string, Given>()
  for (const [name, value] of Object.entries(parsed(file, text))) {
    if (!Object.hasOwn(SETTINGS, name)) {
      throw invalid(
        `${show(name)} in ${file} is no setting: take it out, or write one of ${SETTING_NAMES.join(', ')}`,
      )
    }
    if (!['string', 'number', 'boolean'].includes(typeof value)) {
      throw invalid(
        `${name} in ${file} is ${show(value)}: it must be a text, a number, true or false`,
      )
    }
    entries.set(name, { text: String(value), origin: `${name} in ${file}` })
  }
  return entries
}

function parsed(file: string, text: string): object {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  } catch (error) {
    throw invalid(`${file} is not JSON (${(error as Error).message}): correct it there`)
  }
  throw invalid(`${file} does not hold an object: write { "port": 7420 }, for example`)
}
