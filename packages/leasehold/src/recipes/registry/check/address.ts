/**
 * What kind of address an IP address is, which decides whether a health check may go there.
 *
 * Only the one way of writing an address that everybody reads alike is read here: four decimal
 * numbers, or the forms of RFC 4291. `0x7f.1`, `2130706433` and `0177.0.0.1` are addresses to some
 * programs and names to others, and are refused as hosts altogether.
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

/** The address as bytes, four or sixteen of them; `undefined` where the text is no IP address. */
export function parseAddress(text: string): readonly number[] | undefined {
  return text.includes(':') ? parse6(text) : parse4(text)
}

const QUAD = /^(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})$/

function parse4(text: string): readonly number[] | undefined {
  const bytes = QUAD.exec(text)?.slice(1).map(Number)
  return bytes?.every((byte) => byte <= 255) ? bytes : undefined
}

function parse6(text: string): readonly number[] | undefined {
  const halves = text.split('::')
  // Four numbers may stand at the end of the address only, and so never before a double colon.
  if (halves.length > 2 || halves.slice(0, -1).some((half) => half.includes('.'))) return undefined
  const parts = halves.map((half) => (half === '' ? [] : half.split(':').flatMap(groupOf)))
  const [head, tail] = [parts[0]!, parts[1]]
  const length = head.length + (tail?.length ?? 0)
  if (parts.flat().some((byte) => Number.isNaN(byte))) return undefined
  // A double colon stands for at least one group.
  if (tail === undefined ? length !== 16 : length > 14) return undefined
  return [...head, ...Array<number>(16 - length).fill(0), ...(tail ?? [])]
}

/** The bytes of one group, or of the four numbers that may stand in place of the last two. */
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

function network(text: string): Network {
  const [address, bits] = text.split('/')
  return { bytes: parseAddress(address!)!, bits: Number(bits) }
}

interface Range extends Network {
  readonly kind: AddressKind
}

function range(kind: AddressKind, text: string): Range {
  return { kind, ...network(text) }
}

/** The first range that an address lies in says what it is. */
const RANGES: readonly Range[] = [
  // Where clouds answer their machines' questions about themselves, secrets included.
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
  // Tunnels whose other end is written in the address, disguised.
  range('reserved', '2001::/32'),
  range('reserved', '64:ff9b:1::/48'),
]

/** IPv6 addresses that stand for an IPv4 address, and at which byte that begins. */
const EMBEDDED: readonly (readonly [network: Network, at: number])[] = [
  [network('::ffff:0.0.0.0/96'), 12],
  [network('::ffff:0:0.0.0.0/96'), 12],
  [network('64:ff9b::/96'), 12],
  [network('2002::/16'), 2],
  [network('::/96'), 12],
]

/** What kind of address this is; one that stands for an IPv4 address is of that one's kind. */
export function addressKind(bytes: readonly number[]): AddressKind {
  const own = RANGES.find((entry) => lies(bytes, entry))
  if (own !== undefined) return own.kind
  const embedded = EMBEDDED.find(([around]) => lies(bytes, around))
  if (embedded === undefined) return 'public'
  const [, at] = embedded
  return addressKind(bytes.slice(at, at + 4))
}

function lies(bytes: readonly number[], { bytes: first, bits }: Network): boolean {
  if (bytes.length !== first.length) return false
  const whole = bits >> 3
  for (let at = 0; at < whole; at++) if (bytes[at] !== first[at]) return false
  // Where no bits are left to compare, nothing remains of either byte.
  const rest = 8 - (bits & 7)
  return bytes[whole]! >> rest === first[whole]! >> rest
}
