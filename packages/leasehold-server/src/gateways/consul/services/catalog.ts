import { HEALTH, healthKey, SERVICES, servicesKey } from 'leasehold'
import type { Answer, Call } from '../answer.ts'
import type { BlockingQueries } from '../blocking-queries.ts'
import type { Changes, Watched } from '../changes.ts'
import { NODE_CHECKS } from '../names.ts'
import { byCheckId, type Service, type ShownCheck } from './catalog-entry.ts'
import type { StoredCheck } from './check.ts'
import { checkAnswer, type Indexes, type NodeInfo, serfHealth } from './describe.ts'
import type { Services } from './services.ts'

export interface CatalogParts {
  readonly services: Services
  readonly changes: Changes
  readonly blocking: BlockingQueries
  readonly node: NodeInfo
}

/** What one answer of the catalog or of health is made of. */
export interface Snapshot {
  readonly services: readonly Service[]
  readonly nodeChecks: readonly StoredCheck[]
}

/** The services and checks of one moment, for the routes of catalog and health. */
export class Catalog {
  readonly #parts: CatalogParts

  constructor(parts: CatalogParts) {
    this.#parts = parts
  }

  get node(): NodeInfo {
    return this.#parts.node
  }

  /** Answers now, or as a blocking query, from the instances of one service or of all. */
  answer(
    call: Call,
    name: string | undefined,
    answerTo: (snapshot: Snapshot) => unknown,
  ): Promise<Answer> {
    const { services, blocking } = this.#parts
    return blocking.answer(call, watchedFor(name), async (index) => {
      const found = await services.list(name)
      const nodeChecks = await services.nodeChecks()
      return { index, body: answerTo({ services: found, nodeChecks }) }
    })
  }

  /** The checks of a service. */
  serviceChecks(service: Service): object[] {
    const indexes = this.indexes(service)
    return service.checks.map((check) => checkAnswer(this.node, check, service, indexes))
  }

  /** The checks of the node, which are checks of all its services. */
  nodeChecks(checks: readonly StoredCheck[]): object[] {
    const index = this.#parts.changes.latest([{ prefix: NODE_CHECKS, exact: true }])
    const indexes = { CreateIndex: index, ModifyIndex: index }
    const shown = checks.map((check) => ({
      id: check.id,
      answer: checkAnswer(this.node, check as ShownCheck, undefined, indexes),
    }))
    const serf = { id: 'serfHealth', answer: serfHealth(this.node) }
    return [...shown, serf].sort(byCheckId).map(({ answer }) => answer)
  }

  indexes({ name, id, details: { token } }: Service): Indexes {
    const latest = this.#parts.changes.latest([
      { prefix: servicesKey(name, id), exact: true },
      { prefix: healthKey(name, id), exact: true },
    ])
    return { CreateIndex: token, ModifyIndex: Math.max(token, latest) }
  }
}

function watchedFor(name: string | undefined): readonly Watched[] {
  const prefixes = name === undefined ? [SERVICES, HEALTH] : [servicesKey(name), healthKey(name)]
  const node = { prefix: NODE_CHECKS, exact: true }
  return [...prefixes.map((prefix) => ({ prefix, exact: false })), node]
}
