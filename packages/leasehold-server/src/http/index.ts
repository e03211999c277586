export { type AdmissionOf, HttpApi, type HttpStats } from './http-api.ts'
export { DEFAULT_HTTP, type HttpOptions } from './options.ts'
export { validators } from './requests/validation.ts'
export { problemFor, refuseBadRequest, sendProblem } from './responses/responses.ts'
