export { openStore, refuseServerOptions } from './open-store.ts'
