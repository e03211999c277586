/** Loads parts of Leasehold that no package exports, by their path in the build. */
async function load<Module>(path: string): Promise<Module> {
  return (await import(new URL(`../../../packages/${path}`, import.meta.url).href)) as Module
}

type Records = typeof import('../../packages/leasehold/src/encoding/index.ts')
type Frames = typeof import('../../packages/leasehold/src/stores/file/log/frame.ts')
type Segments = typeof import('../../packages/leasehold/src/stores/file/log/segment.ts')
type WebSocketFrames = typeof import('../../packages/leasehold/src/stores/remote/frames.ts')
type Messages = typeof import('../../packages/leasehold-server/src/stream/messages.ts')
type Config = typeof import('../../packages/leasehold-server/src/config/load-config.ts')
type Rights = typeof import('../../packages/leasehold-server/src/access/rights.ts')

export const records = () => load<Records>('leasehold/dist/encoding/index.js')
export const frames = () => load<Frames>('leasehold/dist/stores/file/log/frame.js')
export const segments = () => load<Segments>('leasehold/dist/stores/file/log/segment.js')
export const webSocketFrames = () => load<WebSocketFrames>('leasehold/dist/stores/remote/frames.js')
export const messages = () => load<Messages>('leasehold-server/dist/stream/messages.js')
export const config = () => load<Config>('leasehold-server/dist/config/load-config.js')
export const rights = () => load<Rights>('leasehold-server/dist/access/rights.js')
