import type { CheckStatus } from '../check/check.ts'
import type { CheckedPolicy, CheckTarget } from '../check/check-policy.ts'

/** The result of one probe. */
export interface ProbeResult {
  readonly status: CheckStatus
  /** In our own words: never contains what the instance answered. */
  readonly note: string
}

/** Probes an instance once. Never rejects, and ends soon after its signal is aborted. */
export type Probe = (target: CheckTarget, signal: AbortSignal) => Promise<ProbeResult>

/** Resolves a host to all its addresses. */
export type Lookup = (host: string) => Promise<readonly string[]>

export interface ProbeSettings {
  readonly policy: CheckedPolicy
  /** How hosts are resolved. Default: by the system. */
  readonly lookup?: Lookup | undefined
  /** CA certificates for the instances, in PEM. Default: the usual ones. */
  readonly ca?: string | readonly string[] | undefined
}

/** The code that uses the network, which is not part of the recipes. */
export interface NetworkProbes {
  networkProbe(settings: ProbeSettings): Probe
  /** Why such a probe would not connect to a target; `undefined` if it would. */
  networkRefusal(
    target: CheckTarget,
    settings: ProbeSettings,
    resolves: boolean,
  ): Promise<string | undefined>
}

export type ProbeLoader = () => Promise<NetworkProbes>
