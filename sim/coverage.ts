/** What the actors have used of the port and of the client, by name. Recorded only on request. */
const used = new Set<string>()
let recording = false

export function recordCoverage(): void {
  recording = true
}

/** All that was used so far: methods as `grant`, their options as `grant.ttl`. */
export function coverage(): string[] {
  return [...used].sort()
}

/** A method was called with these options. What is `undefined` is not given. */
export function exercised(method: string, options: object): void {
  if (recording) record(method, options)
}

function record(name: string, options: object): void {
  used.add(name)
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined) continue
    const option = `${name}.${key}`
    used.add(option)
    if (Array.isArray(value)) {
      for (const entry of value) if (isPlain(entry)) record(option, entry)
    } else if (isPlain(value)) record(option, value)
    else if (typeof value === 'string' && /^[a-z-]+$/.test(value)) used.add(`${option}=${value}`)
  }
}

function isPlain(value: unknown): value is object {
  return (
    typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
  )
}

/**
 * The same object, whose methods are recorded as `name.method` with the options that they are given.
 * Without recording it is the object itself.
 */
export function recorded<Target extends object>(name: string, target: Target): Target {
  if (!recording) return target
  return new Proxy(target, {
    get(_, property) {
      const value = Reflect.get(target, property, target)
      if (typeof property !== 'string') return value
      const called = `${name}.${property}`
      used.add(called)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        for (const arg of args) if (isPlain(arg)) record(called, arg)
        return value.apply(target, args)
      }
    },
  })
}
