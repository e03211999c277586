import { DEFAULT_LIMITS, type Limits, type Random, systemRandom } from '../../port/index.ts'
import { claims } from './claims/claims.ts'
import { waits } from './claims/waits.ts'
import { close } from './close.ts'
import { childLeases } from './leases/child-leases.ts'
import { leases } from './leases/leases.ts'
import { revocations } from './leases/revocations.ts'
import { reads } from './reads.ts'
import { type BadCall, runBadCall } from './refusals/bad-call.ts'
import { badReferences } from './refusals/bad-references.ts'
import { badValues } from './refusals/bad-values.ts'
import { exceededLimits } from './refusals/exceeded-limits.ts'
import { requests } from './requests.ts'
import { type Opened, Scene } from './scene.ts'
import type { Topic } from './topic.ts'
import { held } from './watches/held.ts'
import { watches } from './watches/watches.ts'

export type { Opened } from './scene.ts'

export interface ConformanceOptions {
  /**
   * Opens the store under test; called once for each case. It may be the same engine each time, and
   * others may use it: every case has its own keys.
   */
  readonly open: () => Promise<Opened>
  /** The limits that the store was opened with, if they are not the defaults. */
  readonly limits?: Partial<Limits> | undefined
  /** Others change the engine in the meantime: then it is not tested that its revision is unchanged. */
  readonly shared?: boolean | undefined
  /** The names of cases to skip, each with the reason. */
  readonly exempt?: Readonly<Record<string, string>> | undefined
  /** How long to wait for a notice before a case fails, in milliseconds. Default: 15 seconds. */
  readonly timeout?: number | undefined
  /** @deprecated The old name of `timeout`. */
  readonly patience?: number | undefined
  readonly random?: Random | undefined
}

export interface ConformanceCase {
  readonly name: string
  /** Why this case is skipped, or `undefined`. */
  readonly skip: string | undefined
  run(): Promise<void>
}

// The keys begin the names of cases, which users exempt by name: do not change them.
const TOPICS: Readonly<Record<string, Topic>> = {
  leases,
  families: childLeases,
  revoking: revocations,
  claims,
  waiting: waits,
  watches: { ...watches, ...held },
  requests,
  reads,
  closing: close,
}

/**
 * What every store must do, as cases for any test runner:
 *
 * ```ts
 * for (const { name, run, skip } of conformance({ open })) it.skipIf(skip)(name, run)
 * ```
 *
 * A store whose clock can be moved (`advance`) is tested to the millisecond; another in real time,
 * with the shortest times that its `guarantees` allow. What its guarantees exclude, it must refuse
 * with `unsupported`. A case can be exempted by its name, with a reason.
 */
export function conformance(options: ConformanceOptions): ConformanceCase[] {
  const limits = { ...DEFAULT_LIMITS, ...options.limits }
  const { random = systemRandom, shared = false, exempt = {} } = options
  const setting = { limits, shared, timeout: options.timeout ?? options.patience }
  const run = async (number: number, body: (scene: Scene) => Promise<void>) => {
    const opened = await options.open()
    const prefix = `conformance/${random.id()}/${number}/`
    const scene = new Scene(opened, prefix, setting)
    try {
      await body(scene)
    } finally {
      scene.closeRecorders()
      await opened.store.close()
      await opened.close?.()
    }
  }
  const cases = [
    ...topicCases(),
    ...badCallCases([...badValues(limits), ...badReferences(), ...exceededLimits(limits)]),
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

function badCallCases(rows: readonly BadCall[]): Body[] {
  return rows.map((row) => ({
    name: `bad input: ${row.name}`,
    skip: row.skip,
    body: (scene: Scene) => runBadCall(row, scene),
  }))
}

/** An exemption without a reason, or for no case, will hide a fault sooner or later. */
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
