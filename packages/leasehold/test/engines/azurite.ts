import { createRequire } from 'node:module'
import type { EngineSpec } from './engine.ts'

const require = createRequire(import.meta.url)

/** Azurite, an emulator of Azure's blob service. It saves to its disk every few seconds. */
export const AZURITE: EngineSpec = {
  name: 'azurite',
  program: process.execPath,
  args: (folder, port) =>
    [
      [require.resolve('azurite/dist/src/blob/main.js'), '--silent', '--disableTelemetry'],
      ['--location', folder, '--blobHost', '127.0.0.1', '--blobPort', String(port)],
      ['--skipApiVersionCheck'],
    ].flat(),
  ready: /successfully listen/,
}

/** The public account key of every Azurite. */
export const AZURITE_KEY =
  'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=='

export function azuriteUrl(port: number, container: string): string {
  return `http://127.0.0.1:${port}/devstoreaccount1/${container}`
}
