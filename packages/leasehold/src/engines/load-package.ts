import { LeaseholdError } from '../port/index.ts'

/** Loads a package by its name, as `import(name)` does. */
export type LoadPackage = (name: string) => Promise<unknown>

/**
 * Loads the client of an engine, which the user installs beside this package. This is the only place
 * that loads a package: the library depends on none.
 */
export async function loadPackage<Module>(
  name: string,
  load: LoadPackage = (given) => import(given),
): Promise<Module> {
  try {
    return (await load(name)) as Module
  } catch (error) {
    throw new LeaseholdError(
      'unsupported',
      `this store needs the package ${name}, which cannot be loaded: ${(error as Error).message}. Install it with 'npm install ${name}', or give a store object with your own client`,
      { cause: error },
    )
  }
}
