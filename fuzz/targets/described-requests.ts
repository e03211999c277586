/** A request in the description of the API. */
export interface DescribedRequest {
  readonly method: string
  readonly path: string
  /** The names of its query parameters. */
  readonly parameters: readonly string[]
  /** The example of its body, if it has one. */
  readonly body: unknown
}

interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly in: string }[]
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly example?: unknown }>>
  }
}

let known: readonly DescribedRequest[] = []

/** All requests, from the same table that the server serves and describes. */
export function describedRequests(): readonly DescribedRequest[] {
  return known
}

export interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

/** Reads the requests from the description that the server sends when it starts. */
export function learnRequests({ paths }: Description): void {
  known = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, { parameters = [], requestBody }]) => ({
      method: method.toUpperCase(),
      path,
      parameters: parameters.filter((each) => each.in === 'query').map(({ name }) => name),
      body: requestBody?.content['application/json']?.example,
    })),
  )
}
