import { execFileSync } from 'node:child_process'
import { chownSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import type { Granted } from '../../../../src/port/index.ts'
import { postgresStore } from '../../../../src/stores/postgres/index.ts'
import { describeWith, Engine, POSTGRES, postgresUrl } from '../../../engines/index.ts'

/** Why no small file system can be made here. The server must see it, so root must mount it. */
const obstacle = findObstacle()

function findObstacle(): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-mount-'))
  try {
    mount(folder)
    execFileSync('umount', [folder], { stdio: 'pipe' })
    return undefined
  } catch (error) {
    return `no tmpfs can be mounted here: ${(error as Error).message.split('\n')[0]}`
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function mount(folder: string): void {
  const options = ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', folder]
  execFileSync('mount', options, { stdio: 'pipe' })
}

describeWith(POSTGRES, 'PostgreSQL on a disk that is full', () => {
  if (obstacle) console.warn(`left out: PostgreSQL on a disk that is full (${obstacle})`)

  describe.skipIf(obstacle)('the store', () => {
    it('refuses changes with storage-full, still reads and renews, and recovers without a loss', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'leasehold-full-'))
      const engine = await Engine.start(POSTGRES)
      mount(folder)
      const { uid, gid } = statSync(engine.folder)
      chownSync(folder, uid, gid)
      const small = postgresUrl(engine.port).replace(/postgres$/, 'small')
      const admin = new pg.Pool({ connectionString: postgresUrl(engine.port), max: 1 })
      const pool = new pg.Pool({ connectionString: small, max: 4 })
      try {
        // Only the tables are on it: PostgreSQL stops if it cannot write its log.
        await admin.query(`create tablespace small location '${folder}'`)
        await admin.query('create database small')
        await admin.query('alter database small set default_tablespace = small')
        const store = await postgresStore(pool)
        const held = (await store.grant({
          holder: 'a',
          ttl: 60_000,
          claims: [{ key: 'held' }],
        })) as Granted
        const ballast = join(folder, 'ballast')
        fill(ballast)
        const value = 'x'.repeat(7000)
        const crowd = async () => {
          for (let at = 0; at < 2000; at++) {
            await store.claim({ lease: held.lease, claims: [{ key: `k${at}`, value }] })
          }
        }
        const refused = crowd()
        await expect(refused).rejects.toMatchObject({ code: 'storage-full', outcome: 'refused' })
        await expect(refused).rejects.toThrow('make room')
        expect((await store.read({ key: 'held' })).claims[0]?.token).toBe(held.token)
        expect(await store.renew([held.lease])).toEqual({ lost: [], capped: [] })
        rmSync(ballast)
        const { revision } = (await store.claim({
          lease: held.lease,
          claims: [{ key: 'after', value }],
        })) as { revision: number }
        expect(revision).toBeGreaterThan(held.revision)
        expect((await store.read({ lease: held.lease })).claims.map(({ key }) => key)).toContain(
          'held',
        )
        await store.close()
      } finally {
        await pool.end()
        await admin.end()
        await engine.stop()
        execFileSync('umount', [folder])
        rmSync(folder, { recursive: true })
      }
    })
  })
})

/** Writes until the disk is full. Only the free space inside the tables is left. */
function fill(file: string): void {
  const block = Buffer.alloc(16 * 1024)
  try {
    for (;;) writeFileSync(file, block, { flag: 'a' })
  } catch (error) {
    if ((error as { code?: string }).code !== 'ENOSPC') throw error
  }
}
