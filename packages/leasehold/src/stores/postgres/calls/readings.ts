import {
  CLAIMS_SHOWN,
  type End,
  type HistoryReading,
  type KeyReading,
  type LeaseReading,
  type LeasesReading,
  type PrefixReading,
  type Query,
  type Reading,
} from '../../../port/index.ts'
import type { Database } from '../database.ts'
import {
  type ClaimRow,
  type LeaseRow,
  numberOf,
  type QueueRow,
  readClaim,
  readEnd,
  readLease,
  readQueue,
  readTenure,
  type TenureRow,
} from './answers.ts'

const PAGE_DEFAULT = 1000

/** Reads. Each reading is one statement, and sees one moment. */
export class Readings {
  readonly #database: Database
  readonly #historyPerKey: number

  constructor(database: Database, historyPerKey: number) {
    this.#database = database
    this.#historyPerKey = historyPerKey
  }

  read<Q extends Query>(query: Q): Promise<Reading<Q>> {
    return this.#read(query) as Promise<Reading<Q>>
  }

  #read(query: Query): Promise<Reading> {
    if ('key' in query) return this.#key(query.key, query.limit ?? PAGE_DEFAULT)
    if ('prefix' in query) return this.#prefix(query.prefix, query.after, query.limit)
    if ('lease' in query) return this.#lease(query.lease, query.limit ?? PAGE_DEFAULT)
    if ('leases' in query) return this.#leases(query.after, query.limit ?? PAGE_DEFAULT)
    return this.#history(query.history)
  }

  async #key(key: string, most: number): Promise<KeyReading> {
    const [revision, queue] = await this.#database.ask<[number, QueueRow]>(
      'read_key($1, $2::text::bigint)',
      [key, most],
    )
    return { revision, ...readQueue(queue) }
  }

  async #prefix(prefix: string, after = '', most = PAGE_DEFAULT): Promise<PrefixReading> {
    const [revision, rows] = await this.#database.ask<[number, [string, QueueRow][]]>(
      "read_prefix($1, nullif($2, ''), $3::text::bigint, $4::text::bigint)",
      [prefix, after, most, CLAIMS_SHOWN],
    )
    const keys = rows.slice(0, most).map(([key, queue]) => ({ key, ...readQueue(queue) }))
    return { revision, keys, more: rows.length > most }
  }

  async #lease(id: string, most: number): Promise<LeaseReading> {
    const [revision, lease, end, claims] = await this.#database.ask<
      [number, LeaseRow | null, End | null, ClaimRow[]]
    >('read_lease($1::text::bigint, $2::text::bigint)', [numberOf(id), most])
    return {
      revision,
      lease: lease === null ? undefined : readLease(lease),
      end: readEnd(end),
      claims: claims.map(readClaim),
    }
  }

  async #leases(after: string | undefined, most: number): Promise<LeasesReading> {
    const [revision, rows] = await this.#database.ask<[number, LeaseRow[]]>(
      'read_leases($1::text::bigint, $2::text::bigint)',
      [after === undefined ? 0 : numberOf(after), most],
    )
    return { revision, leases: rows.slice(0, most).map(readLease), more: rows.length > most }
  }

  async #history(key: string): Promise<HistoryReading> {
    const [revision, rows] = await this.#database.ask<[number, TenureRow[]]>(
      'read_history($1, $2::text::bigint)',
      [key, this.#historyPerKey],
    )
    return { revision, tenures: rows.map(readTenure) }
  }
}
