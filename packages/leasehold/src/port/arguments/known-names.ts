import { invalid, type LeaseholdError } from '../errors.ts'
import { show } from './show.ts'

/**
 * The names that an object of this type may have. The compiler refuses a list that differs from the
 * type, so the two cannot drift apart.
 */
export function knownNames<Type extends object>(
  names: Record<keyof Type & string, true>,
): ReadonlySet<string> {
  return new Set(Object.keys(names))
}

/** Refuses an object with a name that is not known: a misspelt option must not be ignored. */
export function checkNames(where: string, given: object, known: ReadonlySet<string>): void {
  for (const name in given) {
    if (!known.has(name))
      throw unknownName(`${show(name)} is not an option of ${where}`, name, known)
  }
}

/** The error for an unknown name, with the name that was probably meant, or all that are known. */
export function unknownName(
  problem: string,
  name: unknown,
  known: ReadonlySet<string>,
): LeaseholdError {
  const near = nearestName(name, known)
  const fix =
    near === undefined ? `use one of ${[...known].join(', ')}` : `did you mean ${show(near)}?`
  return invalid(`${problem}: ${fix}`)
}

/** The known name that differs in few letters, if there is one. Case does not matter. */
export function nearestName(name: unknown, known: Iterable<string>): string | undefined {
  if (typeof name !== 'string') return undefined
  const wanted = name.toLowerCase()
  let nearest: string | undefined
  let least = Math.max(1, Math.floor(wanted.length / 3)) + 1
  for (const candidate of known) {
    const distance = distanceBetween(wanted, candidate.toLowerCase())
    if (distance >= least) continue
    least = distance
    nearest = candidate
  }
  return nearest
}

/** How many letters to add, remove, change or swap with their neighbour to get from a to b. */
function distanceBetween(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const isSame = a[row - 1] === b[column - 1]
      let steps = Math.min(
        last[column]! + 1,
        current[column - 1]! + 1,
        last[column - 1]! + (isSame ? 0 : 1),
      )
      const isSwap =
        row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      if (isSwap) steps = Math.min(steps, beforeLast[column - 2]! + 1)
      current.push(steps)
    }
    beforeLast = last
    last = current
  }
  return last[b.length]!
}
