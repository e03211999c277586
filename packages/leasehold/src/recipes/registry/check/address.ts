/**
 * Classifies IP addresses, to decide whether a health check may connect to them.
 *
 * Only unambiguous notations are accepted: four decimal numbers, or the forms of RFC 4291. Others,
 * such as `0x7f.1`, `2130706433` and `0177.0.0.1`, are addresses to some programs and names to
 * others. They are refused as hosts.
 */
export type AddressKind =
  | 'public'
  | 'private'
  | 'loopback'
  | 'link-local'
  | 'metadata'
  | 'unspecified'
  | 'multicast'
  | 'reserved'

/** The address as 4 or 16 bytes; `undefined` if it is not an IP address. */
export function parseAddress(address: string): readonly number[] | undefined {
  return address.includes(':') ? parse6(address) : parse4(address)
}

const QUAD = /^(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})$/

function parse4(address: string): readonly number[] | undefined {
  const bytes = QUAD.exec(address)?.slice(1).map(Number)
  return bytes?.every((byte) => byte <= 255) ? bytes : undefined
}

function parse6(address: string): readonly number[] | undefined {
  const halves = address.split('::')
  // Four decimal numbers are allowed only at the end, so never before a double colon.
  if (halves.length > 2 || halves.slice(0, -1).some((half) => half.includes('.'))) return undefined
  const parts = halves.map((half) => (half === '' ? [] : half.split(':').flatMap(groupOf)))
  const [head, tail] = [parts[0]!, parts[1]]
  const length = head.length + (tail?.length ?? 0)
  if (parts.flat().some((byte) => Number.isNaN(byte))) return undefined
  // A double colon replaces at least one group.
  if (tail === undefined ? length !== 16 : length > 14) return undefined
  return [...head, ...Array<number>(16 - length).fill(0), ...(tail ?? [])]
}

/** The bytes of one group, or of the four decimal numbers at the end. */
function groupOf(group: string, index: number, groups: readonly string[]): readonly number[] {
  if (group.includes('.') && index === groups.length - 1) return parse4(group) ?? [Number.NaN]
  if (!/^[0-9a-f]{1,4}$/i.test(group)) return [Number.NaN]
  const value = Number.parseInt(group, 16)
  return [value >> 8, value & 255]
}

interface Network {
  readonly bytes: readonly number[]
  readonly bits: number
}

function network(cidr: string): Network {
  const [address, bits] = cidr.split('/')
  return { bytes: parseAddress(address!)!, bits: Number(bits) }
}

interface Range extends Network {
  readonly kind: AddressKind
}

function range(kind: AddressKind, cidr: string): Range {
  return { kind, ...network(cidr) }
}

/** The first matching range counts. */
const RANGES: readonly Range[] = [
  // Metadata services of clouds, which can reveal secrets.
  range('metadata', '169.254.169.254/32'),
  range('metadata', '169.254.170.2/32'),
  range('metadata', '100.100.100.200/32'),
  range('metadata', '168.63.129.16/32'),
  range('metadata', '192.0.0.192/32'),
  range('metadata', 'fd00:ec2::/32'),
  range('metadata', 'fd20:ce::254/128'),
  range('unspecified', '0.0.0.0/8'),
  range('loopback', '127.0.0.0/8'),
  range('link-local', '169.254.0.0/16'),
  range('private', '10.0.0.0/8'),
  range('private', '172.16.0.0/12'),
  range('private', '192.168.0.0/16'),
  range('private', '100.64.0.0/10'),
  range('private', '198.18.0.0/15'),
  range('reserved', '192.0.0.0/24'),
  range('reserved', '192.88.99.0/24'),
  range('multicast', '224.0.0.0/4'),
  range('reserved', '240.0.0.0/4'),
  range('unspecified', '::/128'),
  range('loopback', '::1/128'),
  range('link-local', 'fe80::/10'),
  range('private', 'fec0::/10'),
  range('private', 'fc00::/7'),
  range('multicast', 'ff00::/8'),
  // Tunnels: the address of the other end is encoded in the address.
  range('reserved', '2001::/32'),
  range('reserved', '64:ff9b:1::/48'),
]

/** IPv6 ranges that embed an IPv4 address, and the byte at which it starts. */
const EMBEDDED: readonly (readonly [network: Network, at: number])[] = [
  [network('::ffff:0.0.0.0/96'), 12],
  [network('::ffff:0:0.0.0.0/96'), 12],
  [network('64:ff9b::/96'), 12],
  [network('2002::/16'), 2],
  [network('::/96'), 12],
]

/** The kind of an address. An embedded IPv4 address decides. */
export function addressKind(bytes: readonly number[]): AddressKind {
  const own = RANGES.find((entry) => isWithin(bytes, entry))
  if (own !== undefined) return own.kind
  const embedded = embeddedIn(bytes)
  return embedded === undefined ? 'public' : addressKind(embedded)
}

/** Whether two addresses reach the same host, also if one of them embeds the other. */
export function isSameHost(one: readonly number[], other: readonly number[]): boolean {
  const [plain, second] = [embeddedIn(one) ?? one, embeddedIn(other) ?? other]
  return plain.length === second.length && plain.every((byte, at) => byte === second[at])
}

function embeddedIn(bytes: readonly number[]): readonly number[] | undefined {
  const embedded = EMBEDDED.find(([around]) => isWithin(bytes, around))
  return embedded && bytes.slice(embedded[1], embedded[1] + 4)
}

function isWithin(bytes: readonly number[], { bytes: first, bits }: Network): boolean {
  if (bytes.length !== first.length) return false
  const whole = bits >> 3
  for (let at = 0; at < whole; at++) if (bytes[at] !== first[at]) return false
  // If no bits are left to compare, both sides are 0.
  const rest = 8 - (bits & 7)
  return bytes[whole]! >> rest === first[whole]! >> rest
}
