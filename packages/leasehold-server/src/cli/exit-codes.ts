/** The exit codes of most commands. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  notThere: 3,
} as const

/**
 * The exit codes of the commands that run another, if they do not pass on its exit code.
 * Commands rarely use these numbers; `timeout(1)` and shells use them in the same way.
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
  1  refused or failed; standard error says why
  2  wrong command line, environment variable or configuration file
  3  not found`

export const RUN_EXIT_HELP = `
Exit codes: the code of the command, or
  123  the lease was lost, so the command was stopped
  124  not acquired within --wait
  125  leasehold itself failed; standard error says why
  126  the command is not executable
  127  the command was not found
  128+n  signal n ended the command`

/** Ends the process with this code. */
export class Exit extends Error {
  readonly code: number

  constructor(code: number, message = '') {
    super(message)
    this.code = code
  }
}
