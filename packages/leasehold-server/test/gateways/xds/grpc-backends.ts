import { Client, credentials, Server, ServerCredentials } from '@grpc/grpc-js'
import { afterFile } from '../../../../leasehold/test/setup/after-file.ts'

const PATH = '/test.Who/Are'
const bytes = (value: Buffer) => value
const METHOD = {
  path: PATH,
  requestStream: false,
  responseStream: false,
  requestSerialize: bytes,
  requestDeserialize: bytes,
  responseSerialize: bytes,
  responseDeserialize: bytes,
} as const

/** A gRPC server that answers with its name. Returns its address. */
export async function grpcBackend(name: string): Promise<string> {
  const server = new Server()
  server.addService(
    { Are: METHOD },
    {
      Are: (_call: unknown, answer: (error: null, name: Buffer) => void) =>
        answer(null, Buffer.from(name)),
    },
  )
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  )
  afterFile(() => server.forceShutdown())
  return `127.0.0.1:${port}`
}

/** A client of `xds:///service`. `ask` returns the name of the backend, or the code of a failure. */
export function grpcClient(service: string) {
  const client = new Client(`xds:///${service}`, credentials.createInsecure())
  afterFile(() => client.close())
  const ask = () =>
    new Promise<string>((resolve) => {
      const deadline = Date.now() + 20_000
      client.makeUnaryRequest(PATH, bytes, bytes, Buffer.alloc(0), { deadline }, (error, answer) =>
        resolve(error === null ? answer!.toString() : `code ${error.code}`),
      )
    })
  /** How often each backend answered. */
  const tally = async (calls: number) => {
    const counts: Record<string, number> = {}
    for (let call = 0; call < calls; call++) {
      const name = await ask()
      counts[name] = (counts[name] ?? 0) + 1
    }
    return counts
  }
  return { ask, tally }
}
