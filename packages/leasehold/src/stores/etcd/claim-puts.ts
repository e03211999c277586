import { type ClaimSpec, LeaseholdError } from '../../port/index.ts'
import type { Context } from './context.ts'
import { type KnownLease, spanOf } from './known.ts'
import { claimName, type LeaseRecord, writeClaim, writeLease } from './layout.ts'
import { REQUEST_BYTES } from './options.ts'
import { bytesOfAll } from './sizes.ts'

/** Whose claims are to be made: a lease that is there, or one that begins with them. */
export type Claimant = KnownLease | NewLease

export interface NewLease {
  readonly id: string
  readonly number: number
  readonly born: 0
  readonly record: LeaseRecord
}

export interface Put {
  readonly do: 'put'
  readonly key: string
  readonly value: string
  readonly lease: number
}

/** The claims, and before them the record of a lease that begins with them. */
export function putsFor(
  context: Context,
  lease: Claimant,
  specs: readonly ClaimSpec[],
  at: number,
): Put[] {
  const { layout, nonce } = context
  const { id, number, born, record } = lease
  const puts: Put[] = []
  if (born === 0) {
    puts.push({ do: 'put', key: layout.lease(id), value: writeLease(record), lease: number })
    const life = record.life?.lease
    if (life !== undefined) {
      puts.push({ do: 'put', key: layout.life(id), value: '', lease: life })
    }
  }
  for (const { key, mode = 'exclusive', limit, value } of specs) {
    const { holder } = record
    const text = writeClaim({ holder, span: spanOf(record), claimedAt: at, born, at, value })
    const name = claimName(mode, limit, id, nonce())
    puts.push({ do: 'put', key: layout.claim(key, name), value: text, lease: number })
  }
  return puts
}

/**
 * etcd refuses a request that is too large; here it is said what is too large about it. A value may
 * be several times as long as it is when it is written, so that this is what is measured.
 */
export function checkSize(puts: readonly Put[]): void {
  const bytes = bytesOfAll(puts)
  if (bytes <= REQUEST_BYTES) return
  throw new LeaseholdError(
    'limit-exceeded',
    `what one call writes has ${bytes} bytes: at most ${REQUEST_BYTES} are allowed; claim fewer keys at once`,
  )
}
