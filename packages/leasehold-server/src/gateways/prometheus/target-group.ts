import { parseEndpoint, type ServiceInstance } from '../registry-view/index.ts'

/** One entry of an answer to `http_sd`. */
export interface TargetGroup {
  readonly targets: readonly string[]
  readonly labels: Readonly<Record<string, string>>
}

const PREFIX = '__meta_leasehold_'
const SCHEMES = ['http', 'https']

/**
 * The target of an instance, with everything that relabelling can use. `undefined` if the address
 * names no host and port. `name` selects one of the instance's endpoints instead of its address.
 */
export function targetGroupOf(
  instance: ServiceInstance,
  name: string | undefined,
): TargetGroup | undefined {
  const { endpoints } = instance
  const named = name !== undefined && Object.hasOwn(endpoints, name) ? endpoints[name] : undefined
  const endpoint = name === undefined ? instance.endpoint : parseEndpoint(named)
  if (endpoint?.port === undefined) return undefined
  const { host, family, port, scheme } = endpoint
  return {
    targets: [`${family === 6 ? `[${host}]` : host}:${port}`],
    labels: {
      ...(scheme !== undefined && SCHEMES.includes(scheme) && { __scheme__: scheme }),
      ...labelsOf(instance),
    },
  }
}

function labelsOf(instance: ServiceInstance): Record<string, string> {
  const { service, id, status, note, zone, node, holder, lease, token, since, weight } = instance
  const { address, tags, capabilities, metadata } = instance
  const labels: Record<string, string> = {}
  const fields = { service, id, status, note, zone, node, address, holder, lease, token, weight }
  for (const [field, value] of Object.entries(fields)) {
    if (value !== undefined) labels[`${PREFIX}${field}`] = String(value)
  }
  labels[`${PREFIX}since`] = String(Math.floor(since))
  labels[`${PREFIX}tags`] = separated(tags)
  labels[`${PREFIX}capabilities`] = separated(capabilities)
  for (const [key, value] of Object.entries(metadata)) {
    // If two names become one, the first keeps its value.
    labels[`${PREFIX}metadata_${key.replace(/[^a-zA-Z0-9_]/g, '_')}`] ??= value
  }
  return labels
}

/** With a comma on both sides of each word, so that a regular expression can match one of them. */
function separated(words: readonly string[]): string {
  return words.length === 0 ? '' : `,${words.join(',')},`
}
