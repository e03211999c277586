export { HttpApi, type HttpStats } from './http-api.ts'
export { DEFAULT_HTTP, type HttpOptions } from './options.ts'
export { problemFor, refuseBadRequest, sendProblem } from './responses.ts'
export { validators } from './validation.ts'
