/** What tools do to the world, for hosts that ask a person first or call tools in parallel. */
const CLOSED_WORLD = { openWorldHint: false }

export const READS = { readOnlyHint: true, ...CLOSED_WORLD }
/** Takes something: a second call takes another, or waits. */
export const TAKES = {
  readOnlyHint: false,
  destructiveHint: false,
  idempotentHint: false,
  ...CLOSED_WORLD,
}
/** Changes something; a second call with the same arguments changes nothing more. */
export const REPEATABLE = { ...TAKES, idempotentHint: true }
export const DESTROYS = { ...REPEATABLE, destructiveHint: true }
