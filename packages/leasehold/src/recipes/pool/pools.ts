import type { Client } from '../../client/index.ts'
import type { Adaptive } from '../adaptive.ts'
import { checkName, definitionOf, type PoolDefinition } from './definition/definition.ts'
import { Pool } from './pool.ts'

/** The pools of one client. Each pool has one view, however often it is asked for. */
export class Pools {
  readonly #client: Client
  readonly #adaptive: Adaptive
  readonly #pools = new Map<string, Pool>()

  constructor(client: Client, adaptive: Adaptive) {
    this.#client = client
    this.#adaptive = adaptive
  }

  get(name: string, definition?: PoolDefinition): Pool {
    checkName("the pool's name", name)
    const wanted = definition === undefined ? undefined : definitionOf(definition)
    let pool = this.#pools.get(name)
    if (pool === undefined) {
      pool = new Pool(this.#client, name, this.#adaptive)
      this.#pools.set(name, pool)
    }
    if (wanted !== undefined) pool.define(wanted)
    return pool
  }
}
