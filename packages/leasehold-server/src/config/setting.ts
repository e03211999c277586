/**
 * One setting of the server. Flags, environment, file, `--help` and docs/server.md all come from the
 * table in `settings.ts`; there is no other list.
 */
export interface Setting<Value> {
  /** The flag in commander's format: `--port <number>`. */
  readonly flag: string
  /** What it does, as a sentence without a full stop. */
  readonly help: string
  /** The default, as a user would write it. */
  readonly defaultValue?: string | undefined
  /** Describes the default if it is not a single value. */
  readonly defaultText?: string | undefined
  /** Parses a value. Throws `InvalidSetting` if it is not valid. */
  readonly read: (value: string) => Value
}

/** The message says what the value must be. */
export class InvalidSetting extends Error {}

/** `tlsCert` for `--tls-cert <file>`: the name in the file and in commander's options. */
export function fileNameOf({ flag }: Setting<unknown>): string {
  return flagOf({ flag })
    .slice(2)
    .replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

/** `LEASEHOLD_TLS_CERT`. */
export function variableOf({ flag }: Pick<Setting<unknown>, 'flag'>): string {
  return `LEASEHOLD_${flagOf({ flag }).slice(2).replaceAll('-', '_').toUpperCase()}`
}

/** `--tls-cert`, without its argument. */
export function flagOf({ flag }: Pick<Setting<unknown>, 'flag'>): string {
  return flag.split(' ')[0]!
}

/** The help text for `--help`. */
export function helpOf(setting: Setting<unknown>): string {
  const text = setting.defaultValue ?? setting.defaultText
  const suffix = text === undefined ? '' : ` (default: ${text})`
  return `${setting.help}${suffix} [${variableOf(setting)}]`
}
