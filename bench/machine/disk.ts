import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The size of one log record. */
const RECORD = Buffer.alloc(192, 1)
const RECORDS = 2000

/** The limit for durable writes: overwrite one record of an existing file, then sync. */
export interface Disk {
  sync(): void
  end(): void
}

export function openDisk(): Disk {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'))
  const file = openSync(join(folder, 'log'), 'w+')
  writeSync(file, Buffer.alloc(RECORDS * RECORD.length))
  fdatasyncSync(file)
  let at = 0
  return {
    sync: () => {
      writeSync(file, RECORD, 0, RECORD.length, (at++ % RECORDS) * RECORD.length)
      fdatasyncSync(file)
    },
    end: () => {
      closeSync(file)
      rmSync(folder, { recursive: true })
    },
  }
}
