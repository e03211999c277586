/**
 * `crash.test.ts` runs this: it works on a store as hard as it can until it is killed. It prints
 * each call before it makes it, and each answer before it continues.
 */
import { writeSync } from 'node:fs'
import { LeaseholdError } from '../../../../src/port/index.ts'
import { fileStore } from '../../../../src/stores/file/index.ts'
import { CRASH_OPTIONS, type Line } from './crash-options.ts'

const [folder = '', life = '0'] = process.argv.slice(2)
const WORKERS = 12
const KEYS = 6

// The test itself may be killed too; then nobody would kill this process.
process.stdin.resume().on('end', () => process.exit())

function say(line: Line): void {
  writeSync(1, `${JSON.stringify(line)}\n`)
}

const store = await fileStore(folder, CRASH_OPTIONS)
say({ did: 'opened' })
store.watch({ prefix: '' }, (notice) => {
  if (notice.type !== 'events') return
  for (const { type, key, token } of notice.events) {
    if (type === 'removed') say({ did: 'removed', key, token })
  }
})

let requests = 0
const pick = (count: number) => Math.floor(Math.random() * count)
const key = () => `key-${pick(KEYS)}`

async function work(): Promise<void> {
  const ttl = pick(4) === 0 ? 40 : 600_000
  const request = `request-${life}-${requests++}`
  const spec = { holder: 'worker', ttl, claims: [{ key: key(), value: 'v'.repeat(pick(300)) }] }
  const granted = await store.grant({ ...spec, request, ifFree: pick(3) === 0 })
  if (granted.outcome === 'busy') {
    const { first } = granted.ahead[0]!
    say({ did: 'busy', revision: granted.revision, key: first.key, token: first.token })
    return
  }
  const { lease, token, revision } = granted
  const first = { did: 'granted', lease, ttl, key: spec.claims[0]!.key, token, revision } as const
  say({ ...first, request, spec })
  const more = key()
  const claimed = await store.claim({ lease, claims: [{ key: more, mode: 'shared' }] })
  if (claimed.outcome === 'claimed') {
    const { token, revision } = claimed
    say({ did: 'claimed', lease, ttl, key: more, token, revision })
  }
  if (pick(2) === 0) {
    say({ will: 'release', key: first.key, token })
    const { revision } = await store.release({ lease, keys: [first.key], token })
    say({ did: 'released', key: first.key, token, revision })
    // The answer that there is no such claim must stay true, too.
    await store.release({ lease, keys: [first.key], token }).catch(() => {})
    say({ did: 'refused', key: first.key, token })
  }
  if (pick(3) > 0) {
    say({ will: 'revoke', lease })
    const { revision } = await store.revoke({ target: { lease }, why: 'done' })
    say({ did: 'revoked', lease, revision })
  }
}

async function worker(): Promise<void> {
  for (;;) {
    try {
      await work()
    } catch (error) {
      // A lease with a short ttl may have expired on the way.
      if (!(error instanceof LeaseholdError) || error.code !== 'lease-ended') throw error
    }
  }
}

await Promise.all(Array.from({ length: WORKERS }, worker))
