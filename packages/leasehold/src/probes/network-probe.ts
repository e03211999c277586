import { lookup as lookUp } from 'node:dns/promises'
import { networkInterfaces } from 'node:os'
import { isLeaseholdError } from '../port/index.ts'
import {
  type CheckTarget,
  complaintAboutAddress,
  complaintAboutTarget,
  type Lookup,
  type Probe,
  type ProbeResult,
  type ProbeSettings,
  parseAddress,
} from '../recipes/index.ts'
import { connectTo, Refused } from './connection.ts'
import { askGrpc } from './grpc.ts'
import { askHttp } from './http.ts'

/**
 * Checks instances over the network.
 *
 * **Promised.** Each check resolves a host once, and checks every address. It connects to exactly
 * the address that was checked: a name that resolves differently the second time is not resolved a
 * second time. Redirects are not followed, proxies of the environment are not used, nothing is
 * executed, and of an instance's answer only the status is read. So whoever registers an address
 * learns at most whether something healthy is there. A note never reveals what a name resolves to,
 * nor whether it resolves to an address that is not allowed: internal names must not be exposed to
 * everyone who may register.
 */
export function networkProbe(settings: ProbeSettings): Probe {
  return async (target, signal) => {
    try {
      return await look(target, settings, signal)
    } catch (error) {
      // It says nothing about the instance that its check is not allowed.
      if (error instanceof NotAllowed) {
        return { status: 'warning', note: `not checked: ${error.message}` }
      }
      if (error instanceof Refused) return { status: 'critical', note: error.message }
      return { status: 'critical', note: reasonOf(error) }
    }
  }
}

/** A check that the policy does not allow, whatever the state of the network. */
class NotAllowed extends Refused {}

/**
 * Why a probe with these settings would not connect to a target; `undefined` if it would. An outage
 * of the name service is no reason: the probe resolves the name again each time.
 */
export async function networkRefusal(
  target: CheckTarget,
  settings: ProbeSettings,
  resolves: boolean,
): Promise<string | undefined> {
  try {
    if (resolves || parseAddress(target.host) !== undefined) await addressesOf(target, settings)
    else checkTarget(target, settings)
    return undefined
  } catch (error) {
    return error instanceof Refused ? error.message : undefined
  }
}

async function look(
  target: CheckTarget,
  settings: ProbeSettings,
  signal: AbortSignal,
): Promise<ProbeResult> {
  const addresses = await addressesOf(target, settings)
  signal.throwIfAborted()
  const socket = await connectTo(target, addresses[0]!, settings.ca, signal)
  try {
    if (target.scheme === 'tcp') return { status: 'passing', note: '' }
    const ask = target.scheme === 'http' || target.scheme === 'https' ? askHttp : askGrpc
    return await ask(socket, target, signal)
  } finally {
    socket.destroy()
  }
}

function checkTarget(target: CheckTarget, { policy }: ProbeSettings): void {
  const complaint = complaintAboutTarget(target, policy)
  if (complaint !== undefined) throw new NotAllowed(complaint)
}

async function addressesOf(
  target: CheckTarget,
  settings: ProbeSettings,
): Promise<readonly string[]> {
  checkTarget(target, settings)
  const { policy, lookup = systemLookup } = settings
  const { host, port } = target
  const complaint = (address: string) =>
    complaintAboutAddress(address, policy, { port, ownAddresses: ownAddresses() })
  if (parseAddress(host) !== undefined) {
    const wrong = complaint(host)
    if (wrong !== undefined) throw new NotAllowed(wrong)
    return [host]
  }
  const addresses = await lookup(host).catch((error: unknown) => {
    if (isUnknownHost(error)) return []
    throw error
  })
  // A name with one bad address among good ones would pass a check of the first address only.
  const isAllowed = addresses.every((one) => complaint(one) === undefined)
  if (addresses.length === 0 || !isAllowed) throw new Refused(NO_ADDRESS)
  return addresses
}

/** The same for an unknown name and for one whose address is not allowed. */
const NO_ADDRESS =
  'its host has no address that checks may go to: give a name that is known, with addresses that this checker allows'

/** The addresses of this machine now: interfaces come and go. */
function ownAddresses(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((each = []) =>
    each.map(({ address }) => address),
  )
}

function isUnknownHost(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown }
  return code === 'ENOTFOUND' || code === 'ENODATA'
}

const systemLookup: Lookup = async (host) => {
  const found = await lookUp(host, { all: true, verbatim: true })
  return found.map(({ address }) => address)
}

/** The cause in a few words: the system's error code if there is one. */
function reasonOf(error: unknown): string {
  if (isLeaseholdError(error)) return error.message
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown }
  const known: Record<string, string> = {
    ECONNREFUSED: 'the connection was refused',
    ECONNRESET: 'the connection was reset',
    EHOSTUNREACH: 'its host cannot be reached',
  }
  return known[String(code)] ?? String(code ?? message ?? 'it failed')
}
