export { DEFAULT_HTTP, type HttpOptions, type HttpStats } from './http/index.ts'
export {
  createServer,
  DEFAULT_HOST,
  DEFAULT_PORT,
  type LeaseServer,
  type ServerOptions,
} from './server.ts'
export { epochOf, type OpenedStore, openStore } from './stores/index.ts'
export { DEFAULT_STREAM, type StreamOptions } from './stream/options.ts'
export type { StreamStats } from './stream/stream-dependencies.ts'
