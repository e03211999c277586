import type { Report } from './child.ts'
import type { Random } from './random.ts'

/** Code that takes input from outside. */
export interface Target<Input> {
  readonly name: string
  /** Starts the fuzzed code: with coverage to guide the run, without it to measure pauses. */
  start(coverage: boolean): Promise<Runner<Input>>
  /** An input that follows the grammar. */
  generate(random: Random): Input
  /** A changed copy of `input`, which may contain parts of `other`. */
  mutate(input: Input, other: Input, random: Random): Input
}

export interface Runner<Input> {
  run(input: Input): Promise<Report>
  stop(): Promise<void>
}
