import { Child, type Report } from '../child.ts'
import { type Edit, type FileInput, SPECIAL_KINDS, TEMPLATES, WAYS } from '../edits.ts'
import type { Random } from '../random.ts'
import type { Runner, Target } from '../target.ts'

const EDITS_MAX = 8

/** Changes the contents of the log and the snapshots, with right checksums, on a disk in memory. */
export const logTarget: Target<FileInput> = {
  name: 'log',
  start: (coverage) => ChildRunner.start('files', coverage, ['memory']),
  generate: (random) => ({ template: random.pick(TEMPLATES), edits: [edit(random, 'payload')] }),
  mutate: (input, other, random) => mutate(input, other, random, 'payload'),
}

/** Damages a real folder and opens it. */
export const folderTarget: Target<FileInput> = {
  name: 'folder',
  start: (coverage) => ChildRunner.start('files', coverage, ['folder']),
  generate: (random) => ({ template: random.pick(TEMPLATES), edits: [edit(random, 'bytes')] }),
  mutate: (input, other, random) => mutate(input, other, random, 'bytes'),
}

const NAMES = [
  'owner-1',
  'owner-a.tmp',
  'owner-',
  'log-00000001',
  'log-00000002',
  'log-00000001.tmp',
  'log-99999999',
  'log-00000000',
  'snapshot-00000001',
  'snapshot-00000002',
  'snapshot-00000009.tmp',
  'secrets.key',
  'other',
]

function edit(random: Random, mostly: 'bytes' | 'payload'): Edit {
  const file = random.below(8)
  const at = random.oneIn(3) ? random.below(256) : random.below(20_000)
  const length = random.size(5000)
  const value = random.pick([0, 1, 2, 4, 7, 8, 9, 0x7f, 0x80, 0xff, random.below(256)])
  const way = random.pick(WAYS)
  if (!random.oneIn(5)) {
    if (mostly === 'bytes') return { op: 'bytes', file, at, length, way, value }
    return {
      op: 'payload',
      frame: random.below(40),
      at: random.below(200),
      length: random.size(40),
      way,
      value,
    }
  }
  switch (random.below(mostly === 'bytes' ? 5 : 4)) {
    case 0:
      return { op: random.pick(['cut', 'grow'] as const), file, at }
    case 1:
      return { op: random.pick(['delete', 'double'] as const), file }
    case 2:
      return { op: random.pick(['swap', 'copy'] as const), file, other: random.below(8) }
    case 3:
      return {
        op: 'payload',
        frame: random.below(40),
        at: random.below(200),
        length: random.size(40),
        way,
        value,
      }
    default:
      return {
        op: 'special',
        name: random.pick(NAMES),
        kind: random.pick(SPECIAL_KINDS),
        text: random.pick(['', 'x', '{}', 'null', '{"pid":1}', '{"pid":"x","owns":true}']),
      }
  }
}

function mutate(
  input: FileInput,
  other: FileInput,
  random: Random,
  mostly: 'bytes' | 'payload',
): FileInput {
  const { edits } = input
  const at = random.below(Math.max(1, edits.length))
  switch (random.below(6)) {
    case 0:
      return { ...input, template: random.pick(TEMPLATES) }
    case 1:
      return { ...input, edits: edits.toSpliced(at, 1) }
    case 2:
      return { ...input, edits: [...edits, ...other.edits].slice(-EDITS_MAX) }
    case 3:
      return { ...input, edits: [...edits, edit(random, mostly)].slice(-EDITS_MAX) }
    default: {
      const old = edits[at]
      if (old === undefined) return { ...input, edits: [edit(random, mostly)] }
      return { ...input, edits: edits.with(at, nudged(old, random)) }
    }
  }
}

/** The same damage at another place or with another value. */
function nudged(old: Edit, random: Random): Edit {
  if (old.op !== 'bytes' && old.op !== 'payload') return old
  switch (random.below(5)) {
    case 0:
      return { ...old, at: Math.max(0, old.at + random.below(65) - 32) }
    case 1:
      return { ...old, value: random.below(256) }
    case 2:
      return { ...old, way: random.pick(WAYS) }
    case 3:
      return { ...old, length: random.size(5000) }
    default:
      return old.op === 'payload'
        ? { ...old, frame: random.below(40) }
        : { ...old, file: random.below(8) }
  }
}

export class ChildRunner<Input> implements Runner<Input> {
  readonly #name: string
  readonly #coverage: boolean
  readonly #more: readonly string[]
  #child: Child | undefined

  private constructor(name: string, coverage: boolean, more: readonly string[]) {
    this.#name = name
    this.#coverage = coverage
    this.#more = more
  }

  static async start<Input>(
    name: string,
    coverage: boolean,
    more: readonly string[] = [],
  ): Promise<ChildRunner<Input>> {
    return new ChildRunner(name, coverage, more)
  }

  async run(input: Input): Promise<Report> {
    this.#child ??= await Child.start({
      name: this.#name,
      coverage: this.#coverage,
      more: this.#more,
    })
    const report = await this.#child.ask({ input })
    const isStuck = this.#child.died || report.failure?.kind === 'hang'
    if (isStuck || report.rss > RSS_MAX) await this.stop()
    return report
  }

  async stop(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    await child?.stop()
  }
}

const RSS_MAX = 700 << 20
