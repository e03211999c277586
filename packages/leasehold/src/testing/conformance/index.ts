import { DEFAULT_LIMITS, type Limits, type Random, systemRandom } from '../../port/index.ts'
import { badReferences } from './bad-references.ts'
import { badValues } from './bad-values.ts'
import { claims } from './claims.ts'
import { closing } from './closing.ts'
import { families } from './families.ts'
import { fullness } from './full.ts'
import { leases } from './leases.ts'
import { reads } from './reads.ts'
import { requests } from './requests.ts'
import { revoking } from './revoking.ts'
import { type Row, runRow } from './row.ts'
import { type Opened, Scene } from './scene.ts'
import type { Topic } from './topic.ts'
import { waiting } from './waiting.ts'
import { watches } from './watches.ts'

export type { Opened } from './scene.ts'

export interface ConformanceOptions {
  /**
   * Opens the store to be tested; called once for each case. It may be the same engine each time,
   * used by others too: every case has keys of its own.
   */
  readonly open: () => Promise<Opened>
  /** The limits that the store was opened with, where they are not the default ones. */
  readonly limits?: Partial<Limits> | undefined
  /** Others change the engine meanwhile: that its revision stands still is then not tested. */
  readonly shared?: boolean | undefined
  /** The names of cases that are not to be run, each with the reason why not. */
  readonly exempt?: Readonly<Record<string, string>> | undefined
  /** How long to wait for a notice before a case fails, in milliseconds. 15 seconds if not given. */
  readonly patience?: number | undefined
  readonly random?: Random | undefined
}

export interface ConformanceCase {
  readonly name: string
  /** Why this case is not to be run, or `undefined`. */
  readonly skip: string | undefined
  run(): Promise<void>
}

const TOPICS: Readonly<Record<string, Topic>> = {
  leases,
  families,
  revoking,
  claims,
  waiting,
  watches,
  requests,
  reads,
  closing,
}

/**
 * What every store must do, as cases for any test runner:
 *
 * ```ts
 * for (const { name, run, skip } of conformance({ open })) it.skipIf(skip)(name, run)
 * ```
 *
 * A store whose clock can be moved (`advance`) is tested to the millisecond; another in real time,
 * with the shortest times that its `guarantees` allow. What those say that it cannot do, it must
 * refuse with `unsupported`. A case can be exempted by its name, with a reason.
 */
export function conformance(options: ConformanceOptions): ConformanceCase[] {
  const limits = { ...DEFAULT_LIMITS, ...options.limits }
  const { random = systemRandom, shared = false, exempt = {}, patience } = options
  const setting = { limits, shared, patience }
  const run = async (number: number, body: (scene: Scene) => Promise<void>) => {
    const opened = await options.open()
    const prefix = `conformance/${random.id()}/${number}/`
    const scene = new Scene(opened, prefix, setting)
    try {
      await body(scene)
    } finally {
      scene.closeEars()
      await opened.store.close()
      await opened.close?.()
    }
  }
  const cases = [
    ...topicCases(),
    ...rowCases([...badValues(limits), ...badReferences(), ...fullness(limits)]),
  ]
  checkExemptions(exempt, new Set(cases.map(({ name }) => name)))
  return cases.map(({ name, body, skip }, number) => ({
    name,
    skip: exempt[name] ?? skip,
    run: () => run(number, body),
  }))
}

interface Body {
  readonly name: string
  readonly skip?: string | undefined
  readonly body: (scene: Scene) => Promise<void>
}

function topicCases(): Body[] {
  return Object.entries(TOPICS).flatMap(([topic, cases]) =>
    Object.entries(cases).map(([name, body]) => ({ name: `${topic}: ${name}`, body })),
  )
}

function rowCases(rows: readonly Row[]): Body[] {
  return rows.map((row) => ({
    name: `bad input: ${row.name}`,
    skip: row.skip,
    body: (scene: Scene) => runRow(row, scene),
  }))
}

/** An exemption that is not explained, or that exempts nothing, hides a fault sooner or later. */
function checkExemptions(exempt: Readonly<Record<string, string>>, names: Set<string>): void {
  for (const [name, reason] of Object.entries(exempt)) {
    if (!names.has(name)) {
      throw new Error(`there is no case '${name}' to exempt: remove the exemption or correct it`)
    }
    if (typeof reason !== 'string' || reason.trim() === '') {
      throw new Error(`the exemption of '${name}' has no reason: say why the store cannot do this`)
    }
  }
}
