import { isIPv4 } from 'node:net'

/** The 4 or 16 bytes of a valid IP address. */
export function addressBytes(address: string): readonly number[] {
  if (isIPv4(address)) return address.split('.').map(Number)
  const [head = '', tail] = address.split('::')
  const before = groupsOf(head)
  const after = groupsOf(tail ?? '')
  return [...before, ...Array<number>(16 - before.length - after.length).fill(0), ...after]
}

function groupsOf(part: string): number[] {
  if (part === '') return []
  return part.split(':').flatMap((group) => {
    if (group.includes('.')) return group.split('.').map(Number)
    const value = Number.parseInt(group, 16)
    return [value >> 8, value & 255]
  })
}
