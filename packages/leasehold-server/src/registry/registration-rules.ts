import { type CheckerOptions, Leasehold, SERVICES } from 'leasehold'
import {
  type ClaimSpec,
  type Clock,
  delegate,
  type Key,
  LeaseholdError,
  type LeaseStore,
  show,
} from 'leasehold/port'

/** Why a check would not run; `undefined` if it would. */
export type CheckRefusal = (
  key: Key,
  value: string | undefined,
  options?: { readonly resolves?: boolean },
) => Promise<string | undefined>

/** A slow name service delays a registration by at most this. */
const LOOKUP_MS = 2000
/** The most names to resolve at a time. Beyond that a name is accepted unseen. */
const LOOKUPS_MAX = 16
/** How long an accepted entry is accepted again, so that a repeated request is not refused. */
const ACCEPTED_MS = 60_000
const ACCEPTED_MAX = 1000

/**
 * A store that refuses to register an instance whose health check this server would not run.
 * Otherwise the instance would look healthy, or turn critical, without ever being checked.
 *
 * This is for the user who registers. It protects nothing: a name may resolve differently later, so
 * the probe checks the address of each connection again.
 */
export function refusingForbiddenChecks(
  store: LeaseStore,
  refusal: CheckRefusal,
  clock: Clock,
): LeaseStore {
  let lookups = 0
  const accepted = new Map<string, number>()
  const refuse = async (
    { key, value }: Pick<ClaimSpec, 'key' | 'value'>,
    mayResolve: boolean,
  ): Promise<void> => {
    const entry = `${key} ${value}`
    const resolves =
      mayResolve && lookups < LOOKUPS_MAX && !((accepted.get(entry) ?? 0) > clock.now())
    lookups++
    const reason = refusal(key, value, { resolves })
    const why = await inTime(reason, clock).finally(() => lookups--)
    if (why !== undefined) throw refused(key, why)
    if (!resolves) return
    accepted.delete(entry)
    accepted.set(entry, clock.now() + ACCEPTED_MS)
    if (accepted.size > ACCEPTED_MAX) accepted.delete(accepted.keys().next().value!)
  }
  const refuseAny = async (claims: readonly ClaimSpec[]): Promise<void> => {
    for (const claim of claims) if (isInstance(claim)) await refuse(claim, true)
  }
  return delegate(store, {
    // Other requests must not wait for a promise.
    grant: (request) =>
      hasInstance(request?.claims)
        ? refuseAny(request.claims).then(() => store.grant(request))
        : store.grant(request),
    claim: (request) =>
      hasInstance(request?.claims)
        ? refuseAny(request.claims).then(() => store.claim(request))
        : store.claim(request),
    // An instance reports its load often, so its name is not resolved each time.
    update: (request) =>
      isInstance(request)
        ? refuse(request, false).then(() => store.update(request))
        : store.update(request),
  })
}

/** The refusals of a checker with these options. */
export async function checkRefusalOf(
  store: LeaseStore,
  checks: CheckerOptions | 'off',
): Promise<CheckRefusal> {
  // Its registry reads nothing: it only knows the rules.
  const { registry } = await Leasehold.open(store)
  if (checks !== 'off')
    return (...entry) => registry.checkRefusal(entry[0], entry[1], checks, entry[2])
  const noPorts = { allow: { ports: [] } }
  return async (key, value) => {
    const why = await registry.checkRefusal(key, value, noPorts, { resolves: false })
    return why && OFF
  }
}

const OFF =
  'this server runs no health checks. To allow them: start it with --checks private, or with --checks external if you run a checker of your own'

/** Requests arrive here before the store has checked their arguments. */
function hasInstance(claims: unknown): claims is readonly ClaimSpec[] {
  return Array.isArray(claims) && claims.some(isInstance)
}

function isInstance(claim: unknown): claim is { readonly key: Key; readonly value?: string } {
  const { key, value } = (claim ?? {}) as { readonly key?: unknown; readonly value?: unknown }
  return typeof key === 'string' && key.startsWith(SERVICES) && typeof value === 'string'
}

function inTime(reason: Promise<string | undefined>, clock: Clock): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const timer = clock.timer(clock.now() + LOOKUP_MS, () => resolve(undefined))
    reason.then(resolve, reject).finally(() => timer.cancel())
  })
}

/** Not `invalid-argument`, after which a client would never try to register again. */
function refused(key: Key, why: string): LeaseholdError {
  return new LeaseholdError(
    'forbidden',
    `${show(key)} is not registered, because its health check would never run: ${why}. You can also register it without this check`,
  )
}
