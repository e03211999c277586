export type { Auth, Socket } from './connection.ts'
export { FAULTS } from './faults.ts'
export { folderAt } from './folder.ts'
export * from './requests.ts'
export type { Server } from './servers.ts'
export {
  type Connect,
  type EnsembleOptions,
  type Listener,
  ZookeeperClient,
  type ZookeeperClientOptions,
} from './zookeeper-client.ts'
