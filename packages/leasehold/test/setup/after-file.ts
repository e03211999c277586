const cleanups: (() => unknown)[] = []

/**
 * Runs `cleanup` after the tests of the current file, the last one first. Helpers use it instead of
 * `afterAll`, which would run after the first file only if files shared their modules.
 */
export function afterFile(cleanup: () => unknown): void {
  cleanups.push(cleanup)
}

export async function cleanUp(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
}
