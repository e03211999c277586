import { syncBuiltinESMExports } from 'node:module'

type Functions = Record<string, unknown>

/**
 * Runs `act` while functions of one of Node's own modules are replaced, for every module that
 * imports them. Each replacement is called with the function that it replaces.
 */
export async function patched<Module extends object, Answer>(
  module: Module,
  replacements: { readonly [Name in keyof Module]?: (real: Module[Name]) => unknown },
  act: () => Promise<Answer>,
): Promise<Answer> {
  const functions = module as Functions
  const before: Functions = {}
  for (const [name, replace] of Object.entries(replacements)) {
    before[name] = functions[name]
    functions[name] = (replace as (real: unknown) => unknown)(functions[name])
  }
  syncBuiltinESMExports()
  try {
    return await act()
  } finally {
    Object.assign(functions, before)
    syncBuiltinESMExports()
  }
}

/** Runs `act` as if on another system. */
export async function onPlatform<Answer>(platform: string, act: () => Promise<Answer>) {
  const real = process.platform
  Object.defineProperty(process, 'platform', { value: platform })
  try {
    return await act()
  } finally {
    Object.defineProperty(process, 'platform', { value: real })
  }
}

export function failure(code: string): Error {
  return Object.assign(new Error(`${code}: the test makes the system fail`), { code })
}
