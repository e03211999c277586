export { DEFAULT_STREAM, type StreamOptions } from './options.ts'
export { StreamServer, type StreamServerOptions } from './stream-server.ts'
