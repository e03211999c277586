export type { Command, Place, Turn, Wrong } from './command.ts'
export { commandSequences, type FastCheck, type SequenceOptions } from './command-sequences.ts'
export { type CompareOptions, compareWithKernel } from './compare-with-kernel.ts'
export type { OpenedStores } from './sides.ts'
