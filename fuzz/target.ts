import type { Report } from './child.ts'
import type { Random } from './random.ts'

/** Something that takes inputs from outside, and is given bad ones. */
export interface Target<Input> {
  readonly name: string
  /** Starts what is fuzzed; `coverage` guides, without it pauses are measured. */
  start(coverage: boolean): Promise<Runner<Input>>
  /** An input by the grammar. */
  generate(random: Random): Input
  /** An input that differs from one, and may take parts of another. */
  mutate(input: Input, other: Input, random: Random): Input
}

export interface Runner<Input> {
  run(input: Input): Promise<Report>
  stop(): Promise<void>
}
