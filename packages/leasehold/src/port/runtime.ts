/**
 * What differs between Node and the other runtimes that the client of a server runs in: browsers, edge
 * workers, Deno and Bun. Modules of Node are not imported here, because bundlers for browsers would
 * look for them: they are `undefined` where there are none.
 */
const { process, Buffer } = globalThis as Partial<typeof globalThis>

export const nodeOs = process?.getBuiltinModule?.('node:os')
export const nodeEvents = process?.getBuiltinModule?.('node:events')

/** Names this process: others see it as part of a holder. */
export const processName =
  nodeOs === undefined ? 'browser' : `${nodeOs.hostname()}:${process?.pid ?? 0}`

/** The number of bytes of a string in UTF-8. */
export const byteLength: (text: string) => number =
  Buffer?.byteLength ?? ((text) => new TextEncoder().encode(text).length)

/** Reports an error that nobody can catch, as a warning of the process. */
export function warn(error: Error): void {
  if (process?.emitWarning === undefined) console.warn(error)
  else process.emitWarning(error)
}
