import type { Target } from '../target.ts'
import { folderTarget, logTarget } from './files.ts'
import { httpTarget } from './http.ts'
import { parsersTarget, recordsTarget } from './parsers.ts'
import { streamTarget } from './stream.ts'

/** All targets. Each has its own kind of input. */
export const TARGETS = [
  streamTarget,
  httpTarget,
  recordsTarget,
  logTarget,
  folderTarget,
  parsersTarget,
] as unknown as readonly Target<unknown>[]
