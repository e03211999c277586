/**
 * PostgreSQL's advisory locks: they exist only in memory, belong to a connection, and end with it.
 */
import { loadPeer } from '../engines/peer-library.js'
import { locker, type OpenLocker } from './locker.js'

const url = (port: number) => `postgres://postgres@127.0.0.1:${port}/postgres`

/** The package opens a connection for each lock. */
export const openAdvisoryLock: OpenLocker = async ({ port }) => {
  const { default: module } = await loadPeer('advisory-lock')
  const createMutex = (module.default ?? module)(url(port))
  return locker(
    async (key) => {
      const release = await createMutex(key).lock()
      return { release, believes: () => true }
    },
    async () => {},
  )
}

/** Written by hand, on connections that stay open; more connections make it slower here. */
export const openAdvisoryByHand: OpenLocker = async ({ port }) => {
  const { default: pg } = await loadPeer('pg')
  const pool = new pg.Pool({ connectionString: url(port), max: 16 })
  pool.on('error', () => {})
  return locker(
    async (key) => {
      const client = await pool.connect()
      await client.query({ name: 'lock', text: LOCK, values: [key] })
      const release = async () => {
        await client.query({ name: 'unlock', text: UNLOCK, values: [key] })
        client.release()
      }
      return { release, believes: () => true }
    },
    async () => {
      await pool.end()
    },
  )
}

const LOCK = 'SELECT pg_advisory_lock(hashtextextended($1, 0))'
const UNLOCK = 'SELECT pg_advisory_unlock(hashtextextended($1, 0))'
