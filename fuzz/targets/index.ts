import type { Target } from '../target.ts'
import { folderTarget, logTarget } from './files.ts'
import { httpTarget } from './http.ts'
import { parsersTarget, recordsTarget } from './parsers.ts'
import { streamTarget } from './stream.ts'

/** All targets, each with inputs of its own kind. */
export const TARGETS = [
  streamTarget,
  httpTarget,
  recordsTarget,
  logTarget,
  folderTarget,
  parsersTarget,
] as unknown as readonly Target<unknown>[]
