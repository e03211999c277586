import type { Measure } from './plateau.ts'

/** Memory may grow by a tenth and counts by a twentieth. Growth below `atLeast` is noise. */
export const MEASURES = {
  serverRss: { name: 'server memory', unit: 'MB', fraction: 0.1, atLeast: 15 },
  serverHeap: { name: 'server heap', unit: 'MB', fraction: 0.1, atLeast: 3 },
  serverResources: { name: 'server handles', unit: '', fraction: 0.1, atLeast: 6 },
  serverDescriptors: { name: 'server descriptors', unit: '', fraction: 0.1, atLeast: 6 },
  clientRss: { name: 'client memory', unit: 'MB', fraction: 0.1, atLeast: 15 },
  clientHeap: { name: 'client heap', unit: 'MB', fraction: 0.1, atLeast: 3 },
  clientResources: { name: 'client handles', unit: '', fraction: 0.1, atLeast: 6 },
  clientDescriptors: { name: 'client descriptors', unit: '', fraction: 0.1, atLeast: 6 },
  leases: { name: 'leases', unit: '', fraction: 0.05, atLeast: 8 },
  keys: { name: 'keys', unit: '', fraction: 0.05, atLeast: 8 },
  files: { name: 'files', unit: '', fraction: 0.05, atLeast: 1.5 },
  fileBytes: { name: 'size of files', unit: 'MB', fraction: 0.1, atLeast: 0.5 },
} as const satisfies Record<string, Measure>

export type MeasureName = keyof typeof MEASURES
export const MEASURE_NAMES = Object.keys(MEASURES) as MeasureName[]
export type Sample = Readonly<Record<MeasureName, number>>
