import type { LeaseObject } from './lease-object.ts'

const COLUMNS = [
  { name: 'Name', type: 'string', format: 'name', description: 'The name', priority: 0 },
  { name: 'Holder', type: 'string', format: '', description: 'spec.holderIdentity', priority: 0 },
  { name: 'Age', type: 'string', format: '', description: 'Since its creation', priority: 0 },
]
const UNITS = [
  { unit: 'd', seconds: 86_400 },
  { unit: 'h', seconds: 3600 },
  { unit: 'm', seconds: 60 },
] as const

/** Whether a client wants rows and columns, as `kubectl get` does. */
export function wantsTable(accept: string | undefined): boolean {
  return /;\s*as=Table\b/.test(accept?.split(',')[0] ?? '')
}

/** The objects as rows for people. */
export function tableOf(objects: readonly LeaseObject[], metadata: unknown, now: number): unknown {
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata,
    columnDefinitions: COLUMNS,
    rows: objects.map(({ metadata: shown, spec }) => ({
      cells: [shown.name, spec['holderIdentity'] ?? '', ageOf(shown.creationTimestamp, now)],
      object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: shown },
    })),
  }
}

function ageOf(timestamp: string, now: number): string {
  const seconds = Math.max(0, Math.floor((now - Date.parse(timestamp)) / 1000))
  const { unit, seconds: per } = UNITS.find((each) => seconds >= 2 * each.seconds) ?? {
    unit: 's',
    seconds: 1,
  }
  return `${Math.floor(seconds / per)}${unit}`
}
