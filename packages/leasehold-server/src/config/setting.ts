/**
 * One thing that can be configured. The table of them (`settings.ts`) is what reads flags,
 * environment and file, what `--help` prints and what docs/server.md shows: there is no other list.
 */
export interface Setting<Value> {
  /** The flag, as commander has it: `--port <number>`. */
  readonly flag: string
  /** What it is for, in a sentence without a full stop. */
  readonly help: string
  /** What stands where nobody says anything, as a person would write it; nothing for "not set". */
  readonly otherwise?: string | undefined
  /** What is meant where neither is given, in words. */
  readonly inWords?: string | undefined
  /** The value that a text stands for; throws a `Complaint` where it stands for none. */
  readonly read: (text: string) => Value
}

/** What is wrong with a text, as the end of a sentence: what it must be, and so how to mend it. */
export class Complaint extends Error {}

/** `tlsCert` for `--tls-cert <file>`: its name in the file, and in commander's options. */
export function fileNameOf({ flag }: Setting<unknown>): string {
  return flagOf({ flag })
    .slice(2)
    .replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

/** `LEASEHOLD_TLS_CERT`. */
export function variableOf({ flag }: Pick<Setting<unknown>, 'flag'>): string {
  return `LEASEHOLD_${flagOf({ flag }).slice(2).replaceAll('-', '_').toUpperCase()}`
}

/** `--tls-cert`, without what follows it. */
export function flagOf({ flag }: Pick<Setting<unknown>, 'flag'>): string {
  return flag.split(' ')[0]!
}

/** What `--help` says of it. */
export function helpOf(setting: Setting<unknown>): string {
  const otherwise = setting.otherwise ?? setting.inWords
  const standard = otherwise === undefined ? '' : `; ${otherwise} if not given`
  return `${setting.help}${standard} [${variableOf(setting)}]`
}
