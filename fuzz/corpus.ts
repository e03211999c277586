import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Inputs are small, because they only describe large data. */
const KEPT_BYTES_MAX = 20_000

/** The inputs of one target, in a folder: the committed ones, and those that runs add. */
export class Corpus<Input> {
  readonly #folder: string
  readonly #target: string

  constructor(folder: string, target: string) {
    this.#folder = folder
    this.#target = target
  }

  /** The committed inputs, and those that earlier runs on this machine found. */
  read(): Input[] {
    return [...this.#readFolder('corpus'), ...this.#readFolder('found')]
  }

  /** Keeps an input that reached new code, for the next run. */
  keep(input: Input): void {
    const json = JSON.stringify(input)
    if (json.length <= KEPT_BYTES_MAX) this.#write('found', json)
  }

  /** Saves an input that failed and returns its path. */
  saveFailure(input: Input): string {
    return this.#write('failures', JSON.stringify(input))
  }

  #readFolder(name: string): Input[] {
    const folder = join(this.#folder, name, this.#target)
    if (!existsSync(folder)) return []
    const files = readdirSync(folder).filter((file) => file.endsWith('.json'))
    return files.sort().map((file) => readInput<Input>(join(folder, file)))
  }

  #write(name: string, json: string): string {
    const folder = join(this.#folder, name, this.#target)
    mkdirSync(folder, { recursive: true })
    const file = join(
      folder,
      `${createHash('sha256').update(json).digest('hex').slice(0, 12)}.json`,
    )
    writeFileSync(file, `${json}\n`)
    return file
  }
}

export function readInput<Input>(file: string): Input {
  return JSON.parse(readFileSync(file, 'utf8')) as Input
}
