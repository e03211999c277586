import type { CheckStatus } from '../check/check.ts'
import type { CheckedPolicy, CheckTarget } from '../check/check-policy.ts'

/** What one look at an instance showed. */
export interface ProbeResult {
  readonly status: CheckStatus
  /** In words of ours: nothing that the instance answered is passed on. */
  readonly note: string
}

/**
 * Looks at an instance once. Never rejected, and ends soon after its signal is aborted, which is how
 * it is told that its time is over.
 */
export type Probe = (target: CheckTarget, signal: AbortSignal) => Promise<ProbeResult>

/** All addresses of a host. */
export type Lookup = (host: string) => Promise<readonly string[]>

export interface ProbeSettings {
  readonly policy: CheckedPolicy
  /** How hosts are looked up. The machine's own way if not given. */
  readonly lookup?: Lookup | undefined
  /** Certificates, in PEM, of those who may vouch for instances. The usual ones if not given. */
  readonly ca?: string | readonly string[] | undefined
}

/** Makes the probe that goes over the network: what does so is not a part of the recipes. */
export type ProbeMaker = (settings: ProbeSettings) => Promise<Probe>
