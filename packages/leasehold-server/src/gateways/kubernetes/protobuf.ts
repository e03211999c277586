import protobuf from 'protobufjs/light.js'
import { badRequest } from './status.ts'

/** The content type in which client-go sends bodies unless it is told otherwise. */
export const PROTOBUF = 'application/vnd.kubernetes.protobuf'

/** What comes before the envelope of every message. */
const MAGIC = Buffer.from('k8s\0')

type Fields = Readonly<Record<string, readonly [id: number, type: string]>>

/** The messages of a Lease and of the options of a deletion, as far as this gateway reads them. */
const MESSAGES: Readonly<Record<string, Fields>> = {
  TypeMeta: { apiVersion: [1, 'string'], kind: [2, 'string'] },
  Unknown: { typeMeta: [1, 'TypeMeta'], raw: [2, 'bytes'] },
  Lease: { metadata: [1, 'ObjectMeta'], spec: [2, 'LeaseSpec'] },
  ObjectMeta: {
    name: [1, 'string'],
    generateName: [2, 'string'],
    namespace: [3, 'string'],
    uid: [5, 'string'],
    resourceVersion: [6, 'string'],
    labels: [11, 'map'],
    annotations: [12, 'map'],
    ownerReferences: [13, 'OwnerReference[]'],
    finalizers: [14, 'string[]'],
  },
  OwnerReference: {
    kind: [1, 'string'],
    name: [3, 'string'],
    uid: [4, 'string'],
    apiVersion: [5, 'string'],
    controller: [6, 'bool'],
    blockOwnerDeletion: [7, 'bool'],
  },
  LeaseSpec: {
    holderIdentity: [1, 'string'],
    leaseDurationSeconds: [2, 'int32'],
    acquireTime: [3, 'MicroTime'],
    renewTime: [4, 'MicroTime'],
    leaseTransitions: [5, 'int32'],
    strategy: [6, 'string'],
    preferredHolder: [7, 'string'],
  },
  MicroTime: { seconds: [1, 'int64'], nanos: [2, 'int32'] },
  DeleteOptions: { preconditions: [2, 'Preconditions'], dryRun: [5, 'string[]'] },
  Preconditions: { uid: [1, 'string'], resourceVersion: [2, 'string'] },
}

const root = protobuf.Root.fromJSON({
  nested: Object.fromEntries(
    Object.entries(MESSAGES).map(([message, fields]) => [
      message,
      { fields: Object.fromEntries(Object.entries(fields).map(describe)) },
    ]),
  ),
})

function describe([name, [id, type]]: [string, Fields[string]]): [string, protobuf.IField] {
  if (type === 'map') return [name, { id, type: 'string', keyType: 'string' } as protobuf.IMapField]
  if (!type.endsWith('[]')) return [name, { id, type }]
  return [name, { id, type: type.slice(0, -2), rule: 'repeated' }]
}

/** The JSON form of a body in protobuf. */
export function readProtobuf(body: Buffer): unknown {
  if (!body.subarray(0, MAGIC.length).equals(MAGIC)) {
    throw badRequest('the body does not begin as a protobuf message of Kubernetes does')
  }
  try {
    const { typeMeta, raw } = decode('Unknown', body.subarray(MAGIC.length))
    const { apiVersion, kind } = (typeMeta ?? {}) as Record<string, string>
    const message = kind === 'Lease' || kind === 'DeleteOptions' ? kind : undefined
    if (message === undefined) return { apiVersion, kind }
    return { apiVersion, kind, ...withTimes(decode(message, (raw ?? Buffer.alloc(0)) as Buffer)) }
  } catch {
    throw badRequest('the body is no valid protobuf message')
  }
}

function decode(message: string, bytes: Uint8Array): Record<string, unknown> {
  const type = root.lookupType(message)
  return type.toObject(type.decode(bytes), { longs: Number })
}

function withTimes(lease: Record<string, unknown>): Record<string, unknown> {
  const { spec } = lease
  if (spec === undefined) return lease
  const fields = Object.entries(spec as object).map(([name, value]) => [
    name,
    name.endsWith('Time') ? timeOf(value) : value,
  ])
  return { ...lease, spec: Object.fromEntries(fields) }
}

/** Throws a `RangeError` if there is no such time. */
function timeOf({ seconds = 0, nanos = 0 }: { seconds?: number; nanos?: number }): string {
  const micros = String(Math.floor(nanos / 1000)).padStart(6, '0')
  return new Date(seconds * 1000).toISOString().replace('.000Z', `.${micros}Z`)
}
