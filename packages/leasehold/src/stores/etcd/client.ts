/**
 * What is used of `@grpc/grpc-js`. The caller hands in the module, so that this package depends on
 * none, and its own credentials, which are only passed on.
 */
export interface Grpc {
  readonly Client: new (address: string, credentials: never, options: never) => GrpcClient
  readonly Metadata: new () => GrpcMetadata
  readonly credentials: { createInsecure(): unknown; createSsl(): unknown }
}

export interface GrpcClient {
  makeUnaryRequest(
    method: string,
    serialize: (bytes: Buffer) => Buffer,
    deserialize: (bytes: Buffer) => Buffer,
    request: Buffer,
    metadata: GrpcMetadata,
    callback: (error: GrpcError | null, answer?: Buffer) => void,
  ): GrpcCall
  makeBidiStreamRequest(
    method: string,
    serialize: (bytes: Buffer) => Buffer,
    deserialize: (bytes: Buffer) => Buffer,
    metadata: GrpcMetadata,
  ): GrpcStream
  close(): void
}

export interface GrpcMetadata {
  set(name: string, value: string): void
}

export interface GrpcCall {
  cancel(): void
}

export interface GrpcStream {
  write(bytes: Buffer): unknown
  cancel(): void
  on(event: 'data', hear: (bytes: Buffer) => void): unknown
  on(event: 'error', hear: (error: GrpcError) => void): unknown
  on(event: 'end', hear: () => void): unknown
}

/** How a call failed, by gRPC's number for it and with what etcd said. */
export interface GrpcError {
  readonly code?: number | undefined
  readonly details?: string | undefined
  readonly message: string
}

/** Requests and answers are bytes already when gRPC gets them. */
export function asBytes(bytes: Buffer): Buffer {
  return bytes
}
