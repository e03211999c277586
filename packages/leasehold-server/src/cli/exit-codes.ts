/** What a command answers its caller with. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  notThere: 3,
} as const

/**
 * What `lock`, `elect` and `register` answer with, where it is not the code of their own command:
 * numbers that commands hardly ever use, and that `timeout(1)` and shells use in the same way.
 */
export const RUN_EXIT = {
  lost: 123,
  notAcquired: 124,
  failed: 125,
  notExecutable: 126,
  notFound: 127,
  /** Plus the number of the signal. */
  signal: 128,
} as const

export const EXIT_HELP = `
Exit codes:
  0  done
  1  refused, or failed; standard error says why
  2  the command line was wrong, or what it takes from the environment or a file
  3  there is no such thing`

export const RUN_EXIT_HELP = `
Exit codes: that of the command, or
  123  what was held was lost, so the command was stopped
  124  not acquired within --wait
  125  leasehold itself failed; standard error says why
  126  the command cannot be executed
  127  the command was not found
  128+n  the command was ended by signal n`

/** An end with a code of its own. */
export class Exit extends Error {
  readonly code: number

  constructor(code: number, message = '') {
    super(message)
    this.code = code
  }
}
